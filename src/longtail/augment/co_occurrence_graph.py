"""``co_occurrence``: how often the rows of one label have another one too."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_labels
from longtail.metrics import filter_truth

__all__ = ["as_ids", "as_share", "co_occurrence", "counted", "row_of", "with_own"]

_BLOCK = 1 << 22  # entries of a block of the product, before small ones are dropped


def co_occurrence(
    Y: Any,
    delta: float = 0.1,
    *,
    symmetric: bool = False,
    labels: Any = None,
    filter_pairs: Any = None,
) -> sp.csr_matrix:
    """Return the shares of co-occurrence above ``delta``, CSR float32 (L, L).

    With the counts G = Y^T Y, entry (j, i) is the share of the rows of label j that have label i::

        G_ij / G_jj                          in (delta, 1]
        (G_ij / G_ii + G_ij / G_jj) / 2      with ``symmetric``

    Row j is conditioned on label j, the label whose text a training row is made of: the transpose
    would lift frequent labels in place of rare ones. Entry (j, j) is always 1, so a label without
    rows has no other one, and ``delta=1`` gives the identity.

    Parameters
    ----------
    Y : matrix of shape (n, L), or list of lists of int
        Labels (n, L) of training rows; a soft label counts by its value, G_ij by the product.
    delta : float
        Shares up to and including it are dropped, from 0 to 1.
    symmetric : bool
        Whether an entry is the mean of the shares of both labels.
    labels : array of int or None
        Ids of the labels j to return rows for, in this order; None for all.
    filter_pairs : array of shape (m, 2) or None
        (m, 2) pairs (row, label) that are taken out of ``Y`` before counting.

    The product is made in blocks of labels, so memory grows with ``Y`` and the result alone. With
    ``delta`` 0 the result is as large as G.

    >>> Y = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    >>> co_occurrence(Y).toarray().round(3)
    array([[1.   , 0.667, 0.333],
           [1.   , 1.   , 0.5  ],
           [1.   , 1.   , 1.   ]], dtype=float32)
    """
    delta = as_share(delta, "delta")
    Y = counted(Y, filter_pairs)
    chosen = as_ids(labels, Y.shape[1])
    parts = list(_blocks(Y, chosen, delta, symmetric))
    if not parts:
        return sp.csr_matrix((0, Y.shape[1]), dtype=np.float32)
    return sp.vstack(parts, format="csr", dtype=np.float32)


def counted(Y: Any, filter_pairs: Any) -> sp.csr_matrix:
    """Return labels in canonical form, without the filter pairs."""
    Y = as_labels(Y)
    return Y if filter_pairs is None else filter_truth(Y, filter_pairs)


def row_of(matrix: sp.csr_matrix) -> np.ndarray:
    """Return the row of every stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def as_ids(labels: Any, n_labels: int) -> np.ndarray:
    """Return label ids (m,) int64; None stands for all. A mask (L,) will do too.

    Raise ValueError for ids out of range and for an id that is named twice.
    """
    if labels is None:
        return np.arange(n_labels)
    ids = np.asarray(labels)
    if ids.size == 0:
        return np.zeros(0, np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iub":
        raise TypeError(f"labels must be a list of label ids or a mask, got {labels!r}")
    if ids.dtype.kind == "b":
        if len(ids) != n_labels:
            raise ValueError(f"labels is a mask of {len(ids)}, but there are {n_labels} labels")
        return np.flatnonzero(ids)
    if ids.min() < 0 or ids.max() >= n_labels:
        bad = ids.min() if ids.min() < 0 else ids.max()
        raise ValueError(f"labels names label {bad}, but there are {n_labels} labels")
    ids = ids.astype(np.int64)
    if len(np.unique(ids)) != len(ids):
        raise ValueError("labels names a label twice")
    return ids


def as_share(value: Any, name: str) -> float:
    """Return a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number from 0 to 1, got {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")
    return float(value)


def _blocks(
    Y: sp.csr_matrix, chosen: np.ndarray, delta: float, symmetric: bool
) -> Iterator[sp.csr_matrix]:
    """Yield rows of the result; ``chosen`` (m,): their labels."""
    n, n_labels = Y.shape
    plain = bool((Y.data == 1).all()) and n < 1 << 24  # float32 counts these exactly
    rows = Y if plain else Y.astype(np.float64)
    by_label = rows.T.tocsr()  # (L, n)
    totals = np.bincount(Y.indices, Y.data, minlength=n_labels)
    # At most so many entries does the product have in the row of a label.
    most = np.bincount(Y.indices, np.repeat(np.diff(Y.indptr), np.diff(Y.indptr)), n_labels)
    edges = _edges(np.minimum(most, n_labels)[chosen])
    for begin, end in itertools.pairwise(edges):
        ids = chosen[begin:end]
        product = by_label[ids] @ rows
        rows_of = row_of(product)
        counts, columns = product.data.astype(np.float64), product.indices
        share = counts / totals[ids][rows_of]
        if symmetric:
            share = (share + counts / totals[columns]) / 2
        kept = (share > delta) & (columns != ids[rows_of])
        share, columns, rows_of = share[kept], columns[kept], rows_of[kept]
        yield with_own(rows_of, columns, np.minimum(share, 1.0), ids, n_labels)


def _edges(sizes: np.ndarray) -> list[int]:
    """Return where blocks of about ``_BLOCK`` entries begin and end; none is empty."""
    edges, ends = [0], np.cumsum(sizes)
    while edges[-1] < len(sizes):
        before = ends[edges[-1] - 1] if edges[-1] else 0
        edges.append(max(edges[-1] + 1, int(np.searchsorted(ends, before + _BLOCK, "right"))))
    return edges


def with_own(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, own: np.ndarray, n_labels: int
) -> sp.csr_matrix:
    """Return CSR (m, L) float32 of these entries, and 1 for label ``own[j]`` in row j, which is
    not among them.
    """
    m = len(own)
    entries = np.concatenate([values, np.ones(m)]).astype(np.float32)
    at = np.concatenate([rows, np.arange(m)]), np.concatenate([columns, own])
    out = sp.coo_matrix((entries, at), shape=(m, n_labels)).tocsr()
    out.sort_indices()
    return out
