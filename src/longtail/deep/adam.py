"""Parameters of a network, and Adam, which changes them."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from longtail.deep.fused import fused_adam

__all__ = ["Adam", "Moments", "Parameters"]


@dataclass
class Moments:
    """Adam's running means of the gradient and of its square."""

    first: torch.Tensor
    second: torch.Tensor

    @classmethod
    def like(cls, weights: torch.Tensor) -> Moments:
        return cls(torch.zeros_like(weights), torch.zeros_like(weights))


@dataclass
class Parameters:
    """``w1`` (d, h), ``b1`` (h,), ``w2`` (L, h), ``b2`` (L,) with their moments; ``masks`` of the
    weights that pruning has left, by name (bool, None for all).
    """

    weights: dict[str, torch.Tensor]
    moments: dict[str, Moments] = field(default_factory=dict)
    masks: dict[str, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, weights in self.weights.items():
            self.moments.setdefault(name, Moments.like(weights))


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015), with the step length corrected for the start."""

    learning_rate: float
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def update(
        self,
        weights: torch.Tensor,
        moments: Moments,
        gradient: torch.Tensor,
        step: int,
        *,
        rows: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> None:
        """Changes ``weights`` and ``moments`` in place. The decay is decoupled (AdamW).

        ``rows``: those the gradient is of, all different; None for all. ``mask``: weights that
        pruning has left, as wide as ``weights``; the others have zero moments and stay at zero.
        """
        correction2 = (1 - self.beta2**step) ** 0.5
        rate = self.learning_rate * correction2 / (1 - self.beta1**step)
        decay = 1 - self.learning_rate * self.weight_decay
        epsilon = self.epsilon * correction2
        if fused_adam(
            (weights, moments.first, moments.second),
            gradient,
            rows=rows,
            mask=mask,
            rate=rate,
            decay=decay,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=epsilon,
        ):
            return
        gradient = gradient.float()
        if mask is not None:
            gradient = gradient * (mask if rows is None else mask[rows])
        arrays = (weights, moments.first, moments.second)
        w, first, second = arrays if rows is None else (array[rows] for array in arrays)
        first.lerp_(gradient, 1 - self.beta1)
        second.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        if self.weight_decay:
            w.mul_(decay)
        w.addcdiv_(first, second.sqrt().add_(epsilon), value=-rate)
        if rows is not None:
            weights[rows], moments.first[rows], moments.second[rows] = w, first, second
