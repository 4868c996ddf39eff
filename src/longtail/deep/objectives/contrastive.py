"""Losses over a pool of labels, several of which are right: SupCon, decoupled softmax, triplets.

Scores are divided by ``temperature``. Every row counts alike, whatever the number of its positives;
rows that have none in the pool count for nothing. The same functions serve the other direction,
labels looking for rows: pass the transposed scores.

Which positives a row learns from is the choice of whoever makes the targets: with one of them
(pick-one-label) the others must be absent (``present``), or they would be taken for negatives.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from longtail.deep.objectives.objective import Bound, Objective

__all__ = ["Decoupled", "PoolObjective", "SupCon", "Triplet"]


@dataclass(frozen=True)
class PoolObjective(Objective):
    """A loss that compares the labels of a pool with each other."""

    temperature: float = 1.0
    link: ClassVar[str] = "identity"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature must be positive, got {self.temperature}")

    def start_bias(self, targets: Any) -> np.ndarray:
        return np.zeros(targets.shape[1], np.float32)

    def rows(self, targets: Any, device: torch.device, epoch: int) -> Any:
        raise TypeError(f"{type(self).__name__} learns from pools of labels only")

    def bind(self, targets: Any, bounds: list[int]) -> Bound:
        raise TypeError(f"{type(self).__name__} learns from pools of labels only")

    def on_pool(
        self,
        z: torch.Tensor,
        targets: torch.Tensor,
        weights: torch.Tensor | None,
        present: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        share = (targets if weights is None else targets * weights) * present
        total = share.sum(1, keepdim=True)
        learns = total > 0
        share = share / torch.where(learns, total, 1.0)
        value, gradient = self._compared(z / self.temperature, share, present)
        count = learns.sum().clamp(min=1)
        if self.reduction == "sum":
            count = torch.ones_like(count)
        value = torch.where(learns[:, 0], value, 0.0).sum() / count
        return value, torch.where(learns, gradient, 0.0) / (count * self.temperature)

    @abstractmethod
    def _compared(
        self, z: torch.Tensor, share: torch.Tensor, present: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss of every row, (b,), and its gradient by ``z``, (b, s). ``share``: what
        each positive weighs, 1 in all per row.
        """


@dataclass(frozen=True)
class SupCon(PoolObjective):
    """``sum_p w_p (log sum_l e^{z_l} - z_p)``: the softmax over the pool; with all labels in it,
    PAL-N.
    """

    link: ClassVar[str] = "softmax"

    def _compared(
        self, z: torch.Tensor, share: torch.Tensor, present: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        log_p = torch.log_softmax(z.masked_fill(~present, -torch.inf), dim=1)
        log_p = log_p.nan_to_num(nan=-torch.inf, neginf=-torch.inf)  # a row without labels
        value = -(share * log_p.masked_fill(share == 0, 0.0)).sum(1)
        return value, log_p.exp() - share


@dataclass(frozen=True)
class Decoupled(PoolObjective):
    """``sum_p w_p (log(e^{z_p} + sum_n e^{z_n}) - z_p)`` over negatives n: a positive does not
    compete with the others of its row (Gupta et al. 2024).
    """

    def _compared(
        self, z: torch.Tensor, share: torch.Tensor, present: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        positive = share > 0
        negatives = z.masked_fill(~present | positive, -torch.inf)
        against = torch.logsumexp(negatives, dim=1, keepdim=True)
        margin = against - z  # -inf in a row without negatives, whose loss is 0
        value = (share * torch.nn.functional.softplus(margin).masked_fill(~positive, 0.0)).sum(1)
        pull = share * torch.sigmoid(margin).masked_fill(~positive, 0.0)
        among = torch.exp(negatives - against).nan_to_num(nan=0.0)
        return value, pull.sum(1, keepdim=True) * among - pull


@dataclass(frozen=True)
class Triplet(PoolObjective):
    """``sum_p w_p max(0, margin - z_p + max_n z_n)``: each positive against the hardest negative,
    or with ``hardest`` above 1 against the mean of so many (NGAME, Dahiya et al. 2023).
    """

    margin: float = 0.3
    hardest: int = 1

    def _compared(
        self, z: torch.Tensor, share: torch.Tensor, present: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        positive = share > 0
        negatives = z.masked_fill(~present | positive, -torch.inf)
        hard, at = negatives.topk(min(self.hardest, z.shape[1]), dim=1)
        error = (self.margin - z[:, :, None] + hard[:, None, :]).clamp(min=0)  # (b, s, hardest)
        error = error.masked_fill(~positive[:, :, None], 0.0)
        each = share[:, :, None] / hard.shape[1]
        wrong = (error > 0) * each
        gradient = -wrong.sum(2)
        gradient.scatter_add_(1, at, wrong.sum(1))
        return (error * each).sum((1, 2)), gradient
