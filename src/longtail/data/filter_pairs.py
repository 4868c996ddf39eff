"""Filter pairs: (row, label) pairs that evaluation must leave out: the text gives the answer away.

One pair a line, both counted from 0; the file may be empty, and blank lines mean nothing::

    file = { [ space ] , [ row , space , label , [ space ] ] , end } ;

Spaces, line ends, gzip and the byte-order mark are as in ``xc_format``.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from longtail._lines import FilePath, open_for_writing
from longtail._native import core
from longtail.data.text_blocks import feed_blocks, text_blocks

__all__ = ["read_filter_pairs", "write_filter_pairs"]


def read_filter_pairs(
    path: FilePath, *, n_rows: int | None = None, n_labels: int | None = None
) -> np.ndarray:
    """Read pairs as an (m, 2) int64 array, in the order of the file.

    With ``n_rows`` or ``n_labels``, a row or label beyond is refused with its place in the file:
    the usual sign of another split's filter.

    Parameters
    ----------
    path : str or path
        Where the file is.
    n_rows : int, default=None
        Rows there are, to refuse others.
    n_labels : int, default=None
        Labels there are, to refuse others.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "filter.txt")
    >>> write_filter_pairs(path, [[0, 7], [3, 1]])
    >>> read_filter_pairs(path).tolist()
    [[0, 7], [3, 1]]
    """
    most = int(core.MAX_COLUMNS)
    limits = [most if n is None else min(int(n), most) for n in (n_rows, n_labels)]
    parser = core.PairLines(*limits)
    with contextlib.closing(text_blocks(path)) as blocks:
        feed_blocks(path, blocks, parser)
    pairs: np.ndarray = parser.take()
    return pairs


def write_filter_pairs(path: FilePath, pairs: Any) -> None:
    """Write an (m, 2) array of whole numbers, not below 0; gzip if the name ends in .gz.

    Parameters
    ----------
    path : str or path
        Where the file is.
    pairs : array of shape (m, 2)
        Pairs (row, label).
    """
    pairs = np.asarray(pairs)
    if pairs.size == 0:
        pairs = np.empty((0, 2), np.int64)
    if pairs.dtype.kind not in "iu":
        raise TypeError(f"pairs must be whole numbers, got dtype {pairs.dtype}")
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"pairs must have the shape (m, 2), got {pairs.shape}")
    if pairs.size and (pairs.min() < 0 or pairs.max() >= core.MAX_COLUMNS):
        raise ValueError(
            f"pairs must lie between 0 and {core.MAX_COLUMNS - 1}, "
            f"got {pairs.min()} to {pairs.max()}"
        )
    with open_for_writing(path) as file:
        file.writelines(b"%d %d\n" % (row, label) for row, label in pairs.tolist())
