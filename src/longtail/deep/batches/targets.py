"""Targets of a training: labels with what their entries weigh, or dense numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from longtail.deep.batches.sparse_rows import Batch, SparseRows

__all__ = ["DenseRows", "LabelBatch", "LabelRows"]


@dataclass
class LabelBatch:
    """``entries``: the observed labels of a batch, where values are the weight of being a positive
    and ``extra``, if there is one, that of being a negative (None: 1 less the former).
    ``row_weight`` (b,): what an absent label of each row weighs as a negative (None: 1).
    """

    entries: Batch
    row_weight: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.entries)


class LabelRows:
    """A label matrix on a device, with weights as an objective wants them."""

    def __init__(
        self,
        Y: Any,
        device: torch.device,
        negative: np.ndarray | None = None,
        row_weight: np.ndarray | None = None,
    ) -> None:
        self.rows = SparseRows(Y, device, negative)
        self.row_weight = None
        if row_weight is not None:
            self.row_weight = torch.tensor(np.asarray(row_weight, np.float32)).to(device)

    def take(self, rows: torch.Tensor) -> LabelBatch:
        return self._with_weights(self.rows.take(rows), rows)

    def batches(self, rows: torch.Tensor, batch_size: int) -> Iterator[LabelBatch]:
        """Yield the rows with these numbers, so many at a time, in this order."""
        for part, entries in zip(
            rows.split(batch_size), self.rows.batches(rows, batch_size), strict=True
        ):
            yield self._with_weights(entries, part)

    def _with_weights(self, entries: Batch, rows: torch.Tensor) -> LabelBatch:
        weight = None if self.row_weight is None else self.row_weight[rows]
        return LabelBatch(entries, weight)


class DenseRows:
    """Targets ``T`` (n, c) of a regression on a device."""

    def __init__(self, targets: Any, device: torch.device) -> None:
        self.targets = torch.tensor(np.asarray(targets, np.float32)).to(device)

    def take(self, rows: torch.Tensor) -> torch.Tensor:
        return self.targets[rows]

    def batches(self, rows: torch.Tensor, batch_size: int) -> Iterator[torch.Tensor]:
        """Yield the rows with these numbers, so many at a time, in this order."""
        return (self.targets[part] for part in rows.split(batch_size))
