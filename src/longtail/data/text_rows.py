"""``TextRows``: texts that are taken like the rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["TextRows"]


class TextRows(list[str]):
    """A list of texts with ``shape``, whose rows can also be taken with an array of numbers or a
    mask.

    >>> rows = TextRows(["a", "b", "c"])
    >>> rows[np.array([True, False, True])], rows.shape
    (['a', 'c'], (3,))
    """

    @property
    def shape(self) -> tuple[int]:
        """``(n,)``"""
        return (len(self),)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return TextRows(super().__getitem__(rows))
        if isinstance(rows, np.ndarray) and rows.ndim == 1:
            return TextRows(
                super(TextRows, self).__getitem__(i) for i in np.arange(len(self))[rows]
            )
        return super().__getitem__(rows)
