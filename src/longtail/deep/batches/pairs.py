"""Batches of two kinds of texts: rows, and the labels of a pool.

    rows of the batch ──► some of their labels, some mined negatives ──► pool of labels (one list)
                          every label of a row that is in the pool, however it came there, counts

``PairBatch`` is what an encoder reads, ``PoolTargets`` what an output layer learns from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from longtail.deep.batches.token_rows import TokenBatch, TokenRows

__all__ = ["PairBatch", "PoolTargets", "in_parts"]

_TOGETHER = 1 << 15  # padded tokens that pass through an encoder together


@dataclass
class PoolTargets:
    """``labels``: ids (s,) for all rows of a batch, or (b, s) per row, padded with -1; ``targets``
    (b, s) in [0, 1]; ``weights`` (b, s): what an entry costs, None for 1. ``absent`` (b, s): labels
    that count neither as right nor as wrong, None for none.
    """

    labels: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor | None = None
    absent: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def present(self) -> torch.Tensor:
        """Mask (b, s) of the entries that are labels to learn from."""
        named = (self.labels >= 0).expand(self.targets.shape)
        return named if self.absent is None else named & ~self.absent


@dataclass
class PairBatch:
    """``parts``: the texts of rows and then of labels, in the order of their targets, cut where
    their lengths make it worth while.
    """

    parts: list[TokenBatch]

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def shared(self, group: Any) -> tuple[PairBatch, list[np.ndarray]]:
        """Return what this process of a ``Group`` encodes, a share of every part, since long texts
        come first; and the places of what each process does.
        """
        places: list[list[np.ndarray]] = [[] for _ in range(group.size)]
        own, begin = [], 0
        for part in self.parts:
            mine, shares = part.shared(group)
            own += [mine] if len(mine) else []
            for place, share in zip(places, shares, strict=True):
                place.append(begin + share)
            begin += len(part)
        return PairBatch(own), [np.concatenate(place) for place in places]

    def pieces(self, count: int) -> list[PairBatch]:
        """Cut the batch into about so many parts."""
        each = max(1, -(-count // max(1, len(self.parts))))
        return [PairBatch([piece]) for part in self.parts for piece in part.pieces(each)]


def in_parts(texts: TokenRows, numbers: np.ndarray, device: torch.device) -> list[TokenBatch]:
    """Return some texts, which are sorted by length, longest first, cut into batches."""
    lengths = np.maximum(texts.lengths[numbers], 1)
    parts, begin = [], 0
    while begin < len(numbers):
        some = numbers[begin : begin + max(1, _TOGETHER // int(lengths[begin]))]
        parts.append(texts.take_known(some, torch.tensor(some).to(device)))
        begin += len(some)
    return parts
