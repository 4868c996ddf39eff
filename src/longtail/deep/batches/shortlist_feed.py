"""``ShortlistFeed``: rows, each with a list of labels of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch

from longtail.deep.batches.pairs import PoolTargets
from longtail.deep.batches.token_rows import TokenRows

__all__ = ["ShortlistFeed", "Shortlists"]


class Shortlists(Protocol):
    """The labels that every row looks at."""

    def padded(
        self, rows: np.ndarray, seed: list[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return labels, targets in [0, 1] and weights of some rows, (b, s), padded with -1, 0, 0.

        ``seed``: of what is drawn where a list is too long.
        """


class ShortlistFeed:
    """So many ``steps`` over the rows, in a random order that is drawn anew each time through."""

    def __init__(
        self,
        inputs: TokenRows,
        lists: Shortlists,
        batch_size: int,
        steps: int,
        seed: int,
        device: torch.device,
    ) -> None:
        self.inputs, self.lists, self.batch_size = inputs, lists, batch_size
        self.steps, self.seed, self.device = steps, seed, device

    def __len__(self) -> int:
        return self.steps

    def epoch(self, number: int) -> Iterator[tuple[Any, PoolTargets]]:
        done, turn = 0, 0
        while done < self.steps:
            turn += 1
            rng = np.random.default_rng([self.seed, 1, number, turn])
            order = rng.permutation(len(self.inputs))
            order = self.inputs.arranged(order, self.batch_size, [self.seed, 4, number, turn])
            for begin in range(0, len(order), self.batch_size):
                if done == self.steps:
                    return
                rows = order[begin : begin + self.batch_size]
                labels, targets, weights = (
                    torch.tensor(array).to(self.device)
                    for array in self.lists.padded(rows, [self.seed, 8, number, done])
                )
                tokens = self.inputs.take_known(rows, torch.tensor(rows).to(self.device))
                yield tokens, PoolTargets(labels.long(), targets.float(), weights.float())
                done += 1

    def arrays(self) -> dict[str, torch.Tensor]:
        return {}

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        pass
