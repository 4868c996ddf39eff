"""``ShortlistFeed``: rows, each with a list of labels of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from longtail.deep.batches.pairs import PoolTargets
from longtail.deep.batches.token_rows import TokenRows

__all__ = ["ShortlistFeed", "Shortlists"]


@dataclass(frozen=True)
class Shortlists:
    """The labels that every row looks at: ``labels[indptr[i]:indptr[i + 1]]``, ascending, with
    their ``targets`` in [0, 1] and ``weights``, what an entry costs.
    """

    indptr: np.ndarray
    labels: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def padded(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return labels, targets and weights of some rows, (b, s), padded with -1, 0 and 0."""
        counts = (self.indptr[1:] - self.indptr[:-1])[rows]
        place = np.arange(max(1, int(counts.max(initial=0))))
        inside = place < counts[:, None]
        at = (self.indptr[rows][:, None] + place)[inside]
        out = []
        for array, empty in ((self.labels, -1), (self.targets, 0), (self.weights, 0)):
            wide = np.full(inside.shape, empty, array.dtype)
            wide[inside] = array[at]
            out.append(wide)
        return out[0], out[1], out[2]


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
                    torch.tensor(array).to(self.device) for array in self.lists.padded(rows)
                )
                tokens = self.inputs.take_known(rows, torch.tensor(rows).to(self.device))
                yield tokens, PoolTargets(labels.long(), targets.float(), weights.float())
                done += 1

    def arrays(self) -> dict[str, torch.Tensor]:
        return {}

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        pass
