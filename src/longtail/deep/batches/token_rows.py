"""``TokenRows``: token ids on a device, padded per batch to the longest text in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from longtail.data.tokens import Tokens

__all__ = ["TokenBatch", "TokenRows"]

_BUCKET = 64  # batches that are sorted by length together
_MULTIPLE = 8  # widths of batches, so that products run on aligned rows


@dataclass
class TokenBatch:
    """``ids`` (b, t) int64, padded with zeros; ``mask`` (b, t) bool, true where there is a token;
    ``full``: whether nothing is padded.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    full: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, some: slice) -> TokenBatch:
        """Return some rows, padded as all of them are."""
        return TokenBatch(self.ids[some], self.mask[some], self.full)

    def shared(self, group: Any) -> tuple[TokenBatch, list[np.ndarray]]:
        """Return the rows that this process of a ``Group`` encodes, and the places of those of all
        processes.
        """
        shares = [group.share(len(self), rank) for rank in range(group.size)]
        places = [np.arange(share.start, share.stop) for share in shares]
        return self.rows(shares[group.rank]), places

    def pieces(self, count: int) -> list[TokenBatch]:
        """Cut the batch into so many parts of about equal size."""
        ids, masks = self.ids.tensor_split(count), self.mask.tensor_split(count)
        return [TokenBatch(i, m, self.full) for i, m in zip(ids, masks, strict=True) if len(i)]


class TokenRows:
    """Texts as token ids, cut to ``max_length`` with their last token kept."""

    def __init__(self, tokens: Tokens, device: torch.device, max_length: int | None = None) -> None:
        tokens = tokens if max_length is None else tokens.cut(max_length)
        self.lengths = np.diff(tokens.offsets)
        self.ids = torch.tensor(np.asarray(tokens.ids, np.int32)).to(device)
        self.starts = torch.tensor(np.asarray(tokens.offsets[:-1], np.int64)).to(device)
        self.ends = torch.tensor(np.asarray(tokens.offsets[1:], np.int64)).to(device)

    def __len__(self) -> int:
        return len(self.lengths)

    def arranged(self, order: np.ndarray, batch_size: int, seed: list[int]) -> np.ndarray:
        """Return the rows in another order: texts of similar length share a batch.

        ``_BUCKET`` batches at a time are sorted by length, cut into batches, and these shuffled.
        """
        out = []
        rng = np.random.default_rng(seed)
        for begin in range(0, len(order), _BUCKET * batch_size):
            bucket = order[begin : begin + _BUCKET * batch_size]
            bucket = bucket[np.argsort(self.lengths[bucket], kind="stable")]
            batches = [bucket[i : i + batch_size] for i in range(0, len(bucket), batch_size)]
            short = batches.pop() if len(batches[-1]) < batch_size else None
            out += [batches[i] for i in rng.permutation(len(batches))]
            if short is not None:
                out.append(short)  # stays last, so that all others keep their size
        return np.concatenate(out) if out else order

    def by_length(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows in the order in which they are best encoded: longest first, so that
        memory runs out at once or never.
        """
        return rows[np.argsort(-self.lengths[rows], kind="stable")]

    def take(self, rows: torch.Tensor) -> TokenBatch:
        return self.take_known(rows.cpu().numpy(), rows)

    def batches(self, rows: torch.Tensor, batch_size: int) -> Iterator[TokenBatch]:
        """Yield the rows with these numbers, so many at a time, in this order."""
        numbers = rows.cpu().numpy()
        for begin, part in enumerate(rows.split(batch_size)):
            yield self.take_known(numbers[begin * batch_size : (begin + 1) * batch_size], part)

    def take_known(self, numbers: np.ndarray, rows: torch.Tensor) -> TokenBatch:
        """Return some rows whose numbers are known here and on the device."""
        lengths = self.lengths[numbers]
        longest = int(lengths.max(initial=1))
        width = -(-longest // _MULTIPLE) * _MULTIPLE
        place = self.starts[rows][:, None] + torch.arange(width, device=rows.device)
        mask = place < self.ends[rows][:, None]
        if not len(self.ids):
            return TokenBatch(torch.zeros_like(place), mask)
        ids = self.ids[place.clamp_(max=len(self.ids) - 1)].long()
        ids.masked_fill_(~mask, 0)
        return TokenBatch(ids, mask, full=bool(len(lengths)) and int(lengths.min()) == width)
