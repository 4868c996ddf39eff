"""Rows scaled to unit length."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import core
from longtail.features.mapped_rows import is_mapped, scratch_array

__all__ = ["unit_rows"]


def unit_rows(X: Any, n_threads: int = 1, folder: str | os.PathLike[str] | None = None) -> Any:
    """``X`` (CSR or dense float32) with every row divided by its Euclidean norm; zero rows stay.

    Where ``X`` is mapped from a file, so is what comes back: a temporary file in ``folder``.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    sparse = sp.issparse(X)
    values = np.ascontiguousarray(X.data if sparse else X.reshape(-1))
    if is_mapped(values):
        scaled = scratch_array(values.size, np.float32, folder)
    else:
        scaled = np.empty(values.size, np.float32)
    if sparse:
        indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
    else:
        indptr = np.arange(X.shape[0] + 1, dtype=np.int64) * X.shape[1]
    core.unit_rows(indptr, values, scaled, n_threads)
    if not sparse:
        return scaled.reshape(X.shape)
    out = sp.csr_matrix(X.shape, dtype=np.float32)
    out.indptr, out.indices, out.data = X.indptr, X.indices, scaled
    out.has_canonical_format = True
    return out
