"""``Tokens``: texts after a tokenizer, as ragged rows of ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Tokens"]


@dataclass(frozen=True)
class Tokens:
    """Token ids of n texts: row i is ``ids[offsets[i]:offsets[i + 1]]``.

    ``offsets`` (n + 1,) int64 and ``ids`` int32 may be mapped from disk.

    Parameters
    ----------
    offsets : ndarray of shape (n + 1,)
        Where rows begin.
    ids : ndarray of int32
        Token ids of all rows.
    n_truncated : int, default=0
        How many texts were longer than the tokenizer was allowed to make them.
    source : Tokenizer, default=None
        The tokenizer, where it is known.

    Rows are taken with a slice, an array of row numbers, or a mask, as from a matrix; ``a + b``
    puts them one after the other.

    >>> tokens = Tokens(np.array([0, 2, 5]), np.array([7, 8, 1, 2, 3]))
    >>> len(tokens), tokens[1:].ids
    (2, array([1, 2, 3], dtype=int32))
    """

    offsets: np.ndarray
    ids: np.ndarray
    n_truncated: int = 0
    source: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        offsets = np.asarray(self.offsets, dtype=np.int64)
        ids = np.asarray(self.ids, dtype=np.int32)
        if offsets.ndim != 1 or ids.ndim != 1 or not len(offsets):
            raise ValueError(
                "offsets (n + 1,) and ids must be one-dimensional, got the shapes "
                f"{offsets.shape} and {ids.shape}"
            )
        if offsets[0] != 0 or offsets[-1] != len(ids) or (offsets[1:] < offsets[:-1]).any():
            raise ValueError(f"offsets must ascend from 0 to the number of ids, {len(ids)}")
        if len(ids) and ids.min() < 0:
            raise ValueError(f"token ids must not be negative, got {ids.min()}")
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "ids", ids)

    @classmethod
    def from_lists(cls, rows: Any, n_truncated: int = 0) -> Tokens:
        """Build tokens from one list of ids per text.

        Parameters
        ----------
        rows : iterable of lists of int
            Token ids of each row.
        n_truncated : int, default=0
            How many rows were cut short.
        """
        lengths = [len(row) for row in rows]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        flat = np.empty(int(offsets[-1]), np.int32)
        for row, begin, end in zip(rows, offsets[:-1], offsets[1:], strict=True):
            flat[begin:end] = row
        return cls(offsets, flat, n_truncated)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """``(n,)``, as for other rows."""
        return (len(self),)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of every text, (n,)."""
        return np.diff(self.offsets)

    def __getitem__(self, rows: Any) -> Tokens:
        if isinstance(rows, slice) and rows.step in (None, 1):
            begin, end, _ = rows.indices(len(self))
            at = self.offsets[begin : max(begin, end) + 1]
            return Tokens(at - at[0], self.ids[at[0] : at[-1]], source=self.source)
        numbers = np.arange(len(self))[rows]
        if numbers.ndim != 1:
            raise TypeError("take rows of tokens with a slice, an array of numbers or a mask")
        lengths = self.lengths[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        place = np.repeat(self.offsets[numbers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Tokens(offsets, self.ids[place], source=self.source)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.ids[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True))

    def __add__(self, other: Tokens) -> Tokens:
        """Return the rows of both, one after the other."""
        return Tokens(
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            np.concatenate([self.ids, other.ids]),
            self.n_truncated + other.n_truncated,
            other.source if self.source is None else self.source,
        )

    def cut(self, max_length: int) -> Tokens:
        """Return rows of at most ``max_length`` tokens: the first ones, and the last, which closes
        a text in most vocabularies.

        Parameters
        ----------
        max_length : int
            Most tokens of a row.
        """
        lengths = self.lengths
        if not len(lengths) or lengths.max() <= max_length:
            return self
        long = lengths > max_length
        kept = np.minimum(lengths, max_length)
        offsets = np.concatenate([[0], np.cumsum(kept)])
        place = np.repeat(self.offsets[:-1] - offsets[:-1], kept) + np.arange(offsets[-1])
        ids = np.asarray(self.ids)[place]
        ids[offsets[1:][long] - 1] = self.ids[self.offsets[1:][long] - 1]
        return Tokens(offsets, ids, self.n_truncated + int(long.sum()), self.source)
