"""Rows scaled to unit length."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import core

__all__ = ["unit_rows"]


def unit_rows(X: Any, n_threads: int = 1) -> Any:
    """``X`` (CSR or dense float32) with every row divided by its Euclidean norm; zero rows stay.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    if sp.issparse(X):
        indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
        out = sp.csr_matrix(X.shape, dtype=np.float32)
        out.indptr, out.indices = X.indptr, X.indices
        out.data = core.unit_rows(indptr, np.ascontiguousarray(X.data), n_threads)
        out.has_canonical_format = True
        return out
    indptr = np.arange(X.shape[0] + 1, dtype=np.int64) * X.shape[1]
    return core.unit_rows(indptr, X.reshape(-1), n_threads).reshape(X.shape)
