"""Rows scaled to unit length."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._csr import csr
from longtail._native import core
from longtail.features.mapped_rows import is_mapped, scratch_array

__all__ = ["unit_rows"]


def unit_rows(X: Any, n_threads: int = 1, folder: str | os.PathLike[str] | None = None) -> Any:
    """Return ``X`` (CSR or dense float32, or both) with every row divided by its Euclidean norm;
    zero rows stay.

    Where ``X`` is mapped from a file, so is what comes back: a temporary file in ``folder``.

    Parameters
    ----------
    X : matrix of shape (n, d)
        CSR or dense float32, or both.
    n_threads : int, default=1
        Number of threads.
    folder : str or path, default=None
        Where scratch files of mapped rows go.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    if isinstance(X, BlockRows):
        return _unit_blocks(X, folder)
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
    return csr(X.indptr, X.indices, scaled, X.shape[1]) if sparse else scaled.reshape(X.shape)


def _unit_blocks(X: BlockRows, folder: str | os.PathLike[str] | None) -> BlockRows:
    """Return both blocks over the length of the whole row."""
    left, right = X.sparse, X.dense
    squares = np.einsum("ij,ij->i", right, right, dtype=np.float64)
    lengths = np.diff(left.indptr)
    own = np.repeat(np.arange(len(X)), lengths)
    squares += np.bincount(own, np.square(left.data, dtype=np.float64), minlength=len(X))
    factor = np.divide(1.0, np.sqrt(squares), out=np.ones(len(X)), where=squares > 0)
    if is_mapped(left.data):
        scaled = scratch_array(left.data.size, np.float32, folder)
    else:
        scaled = np.empty(left.data.size, np.float32)
    np.multiply(left.data, np.repeat(factor, lengths), out=scaled, casting="unsafe")
    dense = np.empty(right.shape, np.float32)
    np.multiply(right, factor[:, None], out=dense, casting="unsafe")
    return BlockRows(csr(left.indptr, left.indices, scaled, left.shape[1]), dense)
