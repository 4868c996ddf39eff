"""``Softmax``: the labels of a row as shares of one distribution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from longtail.deep.batches.targets import LabelBatch, LabelRows
from longtail.deep.fused import logit_gradient
from longtail.deep.objectives.objective import Bound, Entries, Objective, Pointwise
from longtail.deep.objectives.weighting import weighted

__all__ = ["Softmax"]


@dataclass(frozen=True)
class Softmax(Objective):
    """``sum_j w_j (log sum_i e^{z_i} - z_j)``, with ``w = y / sum(y)`` for complete labels (PAL-N);
    ``correction`` ("pal", "pal-n", "pol") and ``propensity`` (L,) for labels of which some are
    missing.
    """

    correction: str | None = None
    propensity: np.ndarray | None = None
    seed: int = 0
    link: ClassVar[str] = "softmax"

    @property
    def changes(self) -> bool:
        return self.correction == "pol"

    def start_bias(self, targets: Any) -> np.ndarray:
        counts = np.asarray(targets.sum(axis=0), dtype=np.float64).ravel()
        return np.asarray(np.log((counts + 0.5) / (targets.shape[0] + 1)), np.float32)

    def rows(self, targets: Any, device: torch.device, epoch: int) -> LabelRows:
        made = weighted(targets, self.correction, self.propensity, [self.seed, 5, epoch])
        return LabelRows(made.positive, device)

    def bind(self, targets: LabelBatch, bounds: list[int]) -> Bound:
        return _SoftmaxBatch(self, targets, bounds)

    def on_pool(
        self,
        z: torch.Tensor,
        targets: torch.Tensor,
        weights: torch.Tensor | None,
        present: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        share = targets if weights is None else targets * weights
        share = share * present
        share = share / share.sum(1, keepdim=True).clamp(min=1e-30)
        log_p = torch.log_softmax(z.masked_fill(~present, -torch.inf), dim=1)
        total = share.sum(1, keepdim=True)  # 1, or 0 for a row without labels
        value = -(share * log_p.masked_fill(~present, 0.0)).sum()
        divisor = self.divisor(*z.shape)
        g = (total * log_p.exp() - share).masked_fill(~present, 0.0)
        return value / divisor, g / divisor


class _SoftmaxBatch(Bound):
    looks = True

    def __init__(self, objective: Softmax, labels: LabelBatch, bounds: list[int]) -> None:
        self.entries = entries = Entries(labels, bounds)
        self.divisor = objective.divisor(len(labels), bounds[-1])
        sums = torch.zeros(len(labels), device=entries.positive.device)
        sums.index_add_(0, entries.rows, entries.positive)
        if objective.correction is None:
            entries.positive = entries.positive / sums[entries.rows]
            sums = (sums != 0).float()
        self.sums = sums
        self.normaliser: torch.Tensor

    def look(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        return torch.logsumexp(z, dim=1)

    def settle(self, parts: Iterable[torch.Tensor]) -> None:
        whole = torch.logsumexp(torch.stack(list(parts)), dim=0)
        # |w| e^{z - lse} = e^{z - (lse - log |w|)}: nothing where a row has no labels.
        self.normaliser = (whole - self.sums.log())[:, None]

    def gradient(self, products: torch.Tensor, bias: torch.Tensor, part: slice) -> torch.Tensor:
        rows, columns, weights, _ = self.entries.of(part)
        fused = logit_gradient(products, bias, self.normaliser, 1 / self.divisor)
        if fused is not None:
            z = products[rows, columns].float() + bias[columns]
            p = torch.exp(z - self.normaliser[rows, 0])
            fused[rows, columns] = ((p - weights) / self.divisor).to(fused.dtype)
            return fused
        g = torch.exp(products.float() + bias - self.normaliser)
        g[rows, columns] = g[rows, columns] - weights
        g /= self.divisor
        return g

    def pointwise(self) -> Pointwise:
        entries, normaliser = self.entries, self.normaliser[:, 0]

        def at(z: torch.Tensor) -> torch.Tensor:
            return (torch.exp(z - normaliser[entries.rows]) - entries.positive) / self.divisor

        return Pointwise("softmax", 1 / self.divisor, normaliser, entries.rows, entries.columns, at)

    def value(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        rows, columns, weights, _ = self.entries.of(part)
        whole = self.normaliser[rows, 0] + self.sums[rows].log()
        return (weights * (whole - z[rows, columns])).sum() / self.divisor
