"""Adam, and the arrays it changes: weights, their two moments, and what pruning has left."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from longtail.deep.fused import fused_adam

__all__ = ["Adam", "AdamArray"]


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015), with the step length corrected for the start. The decay is
    decoupled from the gradient (AdamW).
    """

    learning_rate: float
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


@dataclass
class AdamArray:
    """``values`` (n, h) or (n,) float32 with Adam's running means of their gradient (``first``) and
    of its square (``second``). ``mask``: the values that pruning has left (None: all); the others
    and their moments are zero and stay zero.
    """

    values: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor
    mask: torch.Tensor | None = None

    @classmethod
    def starting(cls, values: torch.Tensor) -> AdamArray:
        return cls(values, torch.zeros_like(values), torch.zeros_like(values))

    def part(self, some: slice) -> AdamArray:
        """Return a view of some rows."""
        mask = None if self.mask is None else self.mask[some]
        return AdamArray(self.values[some], self.first[some], self.second[some], mask)

    def update(
        self, gradient: torch.Tensor, adam: Adam, step: int, rows: torch.Tensor | None = None
    ) -> None:
        """Change the values in place by their gradient.

        ``step`` counts from 1. ``rows``: the rows that the gradient is for, all different; None for
        all. The others keep values and moments (lazy Adam).
        """
        arrays = (self.values, self.first, self.second)
        mask = self.mask
        if self.values.ndim == 1:  # a vector is updated as a matrix of one row, or of one column
            axis = 0 if rows is None else 1
            arrays = tuple(array.unsqueeze(axis) for array in arrays)  # type: ignore[assignment]
            gradient = gradient.unsqueeze(axis)
            mask = None if mask is None else mask.unsqueeze(axis)
        correction2 = (1 - adam.beta2**step) ** 0.5
        rate = adam.learning_rate * correction2 / (1 - adam.beta1**step)
        decay = 1 - adam.learning_rate * adam.weight_decay
        epsilon = adam.epsilon * correction2
        if fused_adam(
            arrays,
            gradient,
            rows=rows,
            mask=mask,
            rate=rate,
            decay=decay,
            beta1=adam.beta1,
            beta2=adam.beta2,
            epsilon=epsilon,
        ):
            return
        gradient = gradient.float()
        if mask is not None:
            gradient = gradient * (mask if rows is None else mask[rows])
        w, first, second = arrays if rows is None else (array[rows] for array in arrays)
        first.lerp_(gradient, 1 - adam.beta1)
        second.mul_(adam.beta2).addcmul_(gradient, gradient, value=1 - adam.beta2)
        if adam.weight_decay:
            w.mul_(decay)
        w.addcdiv_(first, second.sqrt().add_(epsilon), value=-rate)
        if rows is not None:
            for array, changed in zip(arrays, (w, first, second), strict=True):
                array[rows] = changed

    def arrays(self) -> dict[str, torch.Tensor]:
        """Return everything a checkpoint needs, by name."""
        out = {"values": self.values, "first": self.first, "second": self.second}
        return out if self.mask is None else {**out, "mask": self.mask}

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        """Take over what ``arrays`` returned, in place."""
        with torch.no_grad():
            for name in ("values", "first", "second"):
                getattr(self, name).copy_(arrays[name])
        mask = arrays.get("mask")
        self.mask = None if mask is None else mask.to(self.values.device)
