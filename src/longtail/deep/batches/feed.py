"""``Feed``: the batches of an epoch, as pairs of inputs and targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch

__all__ = ["Feed", "RowFeed"]


class Feed(Protocol):
    """What a trainer asks for."""

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        """Yield the inputs and targets of every batch; the same for the same number."""

    def arrays(self) -> dict[str, torch.Tensor]:
        """Return what later epochs depend on besides their number, for a checkpoint."""

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        """Take over what ``arrays`` returned."""


class RowFeed:
    """Rows in a random order, anew in every epoch.

    ``inputs``: ``SparseRows`` or ``TokenRows``; ``targets``: called with the number of the epoch,
    returns ``LabelRows`` or ``DenseRows``; ``rows``: numbers of the rows to train on.
    """

    def __init__(
        self,
        inputs: Any,
        targets: Any,
        rows: np.ndarray,
        batch_size: int,
        seed: int,
        device: torch.device,
    ) -> None:
        self.inputs, self.targets, self.rows = inputs, targets, rows
        self.batch_size, self.seed, self.device = batch_size, seed, device

    def __len__(self) -> int:
        return -(-len(self.rows) // self.batch_size)

    def epoch(self, number: int) -> Iterator[tuple[Any, Any]]:
        order = np.random.default_rng([self.seed, 1, number]).permutation(self.rows)
        order = self.inputs.arranged(order, self.batch_size, [self.seed, 4, number])
        rows = torch.tensor(order).to(self.device)
        targets = self.targets(number)
        return zip(
            self.inputs.batches(rows, self.batch_size),
            targets.batches(rows, self.batch_size),
            strict=True,
        )

    def arrays(self) -> dict[str, torch.Tensor]:
        return {}

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        pass
