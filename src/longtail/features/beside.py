"""``beside``: sparse and dense features of the same rows, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_features, check_same_rows
from longtail.features.unit_rows import unit_rows

__all__ = ["beside"]


def beside(X: Any, vectors: Any, *, weight: float = 1.0, n_threads: int = 1) -> sp.csr_matrix:
    """Return rows of ``X`` (n, d) and ``vectors`` (n, e) as one matrix (n, d + e).

    Both are scaled to unit length first, the vectors then by ``weight``: neither drowns the other,
    however many numbers it has.

    >>> beside([[3.0, 4.0]], [[0.0, 2.0]]).toarray()
    array([[0.6, 0.8, 0. , 1. ]], dtype=float32)
    """
    sparse, dense = sp.csr_matrix(as_features(X)), np.asarray(vectors, np.float32)
    check_same_rows(sparse.shape[0], len(dense), "X", "vectors")
    n, width = dense.shape
    left, right = unit_rows(sparse, n_threads), unit_rows(dense, n_threads) * np.float32(weight)
    counts = np.diff(left.indptr)
    indptr = left.indptr.astype(np.int64) + width * np.arange(n + 1)
    indices = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1], np.float32)
    own = np.repeat(indptr[:-1] - left.indptr[:-1], counts) + np.arange(left.nnz)
    indices[own], values[own] = left.indices, left.data
    rest = (indptr[:-1] + counts)[:, None] + np.arange(width)
    indices[rest], values[rest] = sparse.shape[1] + np.arange(width, dtype=np.int32), right
    out = sp.csr_matrix((n, sparse.shape[1] + width), dtype=np.float32)
    out.indptr, out.indices, out.data = indptr, indices, values
    return out
