"""``Binary``: every label a problem of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from longtail.deep.batches.targets import LabelBatch, LabelRows
from longtail.deep.fused import logit_gradient
from longtail.deep.objectives.bases import BASES, sigmoid
from longtail.deep.objectives.objective import Bound, Entries, Objective, Pointwise
from longtail.deep.objectives.weighting import weighted

__all__ = ["Binary"]


@dataclass(frozen=True)
class Binary(Objective):
    """``sum_j a_j l1(z_j) + b_j l0(z_j)`` with the binary loss ``base``.

    ``correction`` and ``propensity`` (L,): for labels of which some are missing
    (``longtail.deep.objectives.weighting``); ``seed``: of what it draws.
    """

    base: str = "logistic"
    correction: str | None = None
    propensity: np.ndarray | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base not in BASES:
            raise ValueError(f"base must be one of {', '.join(BASES)}, got {self.base!r}")

    @property
    def link(self) -> str:  # type: ignore[override]
        return BASES[self.base].link

    @property
    def changes(self) -> bool:
        return self.correction == "pol"

    def start_bias(self, targets: Any) -> np.ndarray:
        counts = np.asarray(targets.sum(axis=0), dtype=np.float64).ravel()
        share = (counts + 0.5) / (targets.shape[0] + 1)
        return BASES[self.base].best(share).astype(np.float32)

    def rows(self, targets: Any, device: torch.device, epoch: int) -> LabelRows:
        made = weighted(targets, self.correction, self.propensity, [self.seed, 5, epoch])
        return LabelRows(made.positive, device, made.negative, made.absent)

    def bind(self, targets: LabelBatch, bounds: list[int]) -> Bound:
        return _BinaryBatch(self, targets, bounds)

    def on_pool(
        self,
        z: torch.Tensor,
        targets: torch.Tensor,
        weights: torch.Tensor | None,
        present: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        base, divisor = BASES[self.base], self.divisor(*z.shape)
        value = targets * base.one(z) + (1 - targets) * base.zero(z)
        g = targets * base.slope_one(z) + (1 - targets) * base.slope_zero(z)
        cost = present.to(z.dtype) if weights is None else weights * present
        return (value * cost).sum() / divisor, g * cost / divisor


class _BinaryBatch(Bound):
    def __init__(self, objective: Binary, labels: LabelBatch, bounds: list[int]) -> None:
        self.entries = Entries(labels, bounds)
        self.name, self.base = objective.base, BASES[objective.base]
        self.logistic = objective.base == "logistic"
        self.divisor = objective.divisor(len(labels), bounds[-1])
        self.row_weight = None if labels.row_weight is None else labels.row_weight[:, None]

    def gradient(self, products: torch.Tensor, bias: torch.Tensor, part: slice) -> torch.Tensor:
        rows, columns, positive, negative = self.entries.of(part)
        plain = self.logistic and negative is None and self.row_weight is None
        fused = logit_gradient(products, bias, None, 1 / self.divisor) if plain else None
        if fused is not None:
            z = products[rows, columns].float() + bias[columns]
            fused[rows, columns] = ((sigmoid(z) - positive) / self.divisor).to(fused.dtype)
            return fused
        z = products.float() + bias
        g = self.base.slope_zero(z)
        if plain:
            g[rows, columns] = g[rows, columns] - positive
        else:
            at = z[rows, columns]
            if self.row_weight is not None:
                g = g * self.row_weight
            g[rows, columns] = self._observed(at, positive, negative)
        g /= self.divisor
        return g

    def _observed(
        self, z: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the gradient of observed labels by their scores, not yet divided."""
        other = 1 - positive if negative is None else negative
        return positive * self.base.slope_one(z) + other * self.base.slope_zero(z)

    def pointwise(self) -> Pointwise:
        entries = self.entries
        return Pointwise(
            self.name,
            1 / self.divisor,
            None if self.row_weight is None else self.row_weight[:, 0],
            entries.rows,
            entries.columns,
            lambda z: self._observed(z, entries.positive, entries.negative) / self.divisor,
        )

    def value(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        rows, columns, positive, negative = self.entries.of(part)
        at, other = z[rows, columns], 1 - positive if negative is None else negative
        zero, absent = self.base.zero(z), self.base.zero(at)
        if self.row_weight is not None:
            zero, absent = zero * self.row_weight, absent * self.row_weight[rows, 0]
        own = positive * self.base.one(at) + other * self.base.zero(at) - absent
        return (zero.sum() + own.sum()) / self.divisor
