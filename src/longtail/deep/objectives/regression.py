"""Regressions: dense targets ``t`` (b, c) instead of labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from longtail.deep.batches.targets import DenseRows
from longtail.deep.objectives.objective import Bound, Objective

__all__ = ["ErrorLength", "SquaredError"]


@dataclass(frozen=True)
class SquaredError(Objective):
    """``1/2 |z - t|^2`` of every row."""

    link: ClassVar[str] = "identity"

    def start_bias(self, targets: Any) -> np.ndarray:
        return np.asarray(np.asarray(targets, np.float64).mean(axis=0), np.float32)

    def rows(self, targets: Any, device: torch.device, epoch: int) -> DenseRows:
        return DenseRows(targets, device)

    def bind(self, targets: torch.Tensor, bounds: list[int]) -> Bound:
        return _ErrorBatch(targets, self.divisor(len(targets), bounds[-1]))


@dataclass(frozen=True)
class ErrorLength(SquaredError):
    """``|z - t|`` of every row: rows that are far off pull no harder than others."""

    def bind(self, targets: torch.Tensor, bounds: list[int]) -> Bound:
        return _LengthBatch(targets, self.divisor(len(targets), bounds[-1]))


class _ErrorBatch(Bound):
    def __init__(self, targets: torch.Tensor, divisor: float) -> None:
        self.targets, self.divisor = targets, divisor

    def gradient(self, products: torch.Tensor, bias: torch.Tensor, part: slice) -> torch.Tensor:
        g = products.float() + bias - self.targets[:, part]
        g /= self.divisor
        return g

    def value(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        return 0.5 * ((z - self.targets[:, part]) ** 2).sum() / self.divisor


class _LengthBatch(_ErrorBatch):
    looks = True
    lengths: torch.Tensor

    def look(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        return ((z - self.targets[:, part]) ** 2).sum(1)

    def settle(self, parts: Iterable[torch.Tensor]) -> None:
        squares = torch.zeros(len(self.targets), device=self.targets.device)
        for part in parts:
            squares += part
        self.lengths = squares.sqrt_().clamp_(min=1e-12)[:, None]

    def gradient(self, products: torch.Tensor, bias: torch.Tensor, part: slice) -> torch.Tensor:
        g = products.float() + bias - self.targets[:, part]
        g /= self.lengths
        g /= self.divisor
        return g

    def value(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        # |z - t| is the sum over labels of (z_j - t_j)^2 / |z - t|.
        return (((z - self.targets[:, part]) ** 2) / self.lengths).sum() / self.divisor
