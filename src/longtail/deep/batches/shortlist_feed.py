"""``ShortlistFeed``: rows, each with a list of labels of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
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
        def listed(step: int, rows: np.ndarray) -> tuple[np.ndarray, Any]:
            return rows, self.lists.padded(rows, [self.seed, 8, number, step])

        batches = enumerate(self._rows(number))
        with ThreadPoolExecutor(1) as pool:  # makes the lists of a batch during the one before
            waiting = [pool.submit(listed, *batch) for batch in islice(batches, 1)]
            while waiting:
                rows, lists = waiting.pop().result()
                waiting = [pool.submit(listed, *batch) for batch in islice(batches, 1)]
                labels, targets, weights = (torch.tensor(a).to(self.device) for a in lists)
                tokens = self.inputs.take_known(rows, torch.tensor(rows).to(self.device))
                yield tokens, PoolTargets(labels.long(), targets.float(), weights.float())

    def _rows(self, number: int) -> Iterator[np.ndarray]:
        """Yield the rows of every step."""
        done, turn = 0, 0
        while done < self.steps:
            turn += 1
            rng = np.random.default_rng([self.seed, 1, number, turn])
            order = rng.permutation(len(self.inputs))
            order = self.inputs.arranged(order, self.batch_size, [self.seed, 4, number, turn])
            for begin in range(0, len(order), self.batch_size):
                if done == self.steps:
                    return
                yield order[begin : begin + self.batch_size]
                done += 1

    def arrays(self) -> dict[str, torch.Tensor]:
        return {}

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        pass
