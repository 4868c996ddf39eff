"""``csr``: a canonical CSR matrix around arrays that are canonical already."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["csr", "narrow_offsets"]

_LARGEST = np.iinfo(np.int32).max
_BLANK = vars(sp.csr_matrix((0, 0), dtype=np.float32))
_KNOWN = _BLANK.keys() == {"_shape", "maxprint", "indptr", "indices", "data"}


def csr(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, n_cols: int) -> sp.csr_matrix:
    """Return the CSR matrix of these arrays, which are neither copied nor looked at.

    Parameters
    ----------
    indptr : ndarray of shape (n + 1,)
        Row offsets. They become int32 where they fit: SciPy wants both index arrays of one type,
        and would copy the large one at every operation.
    indices : ndarray of int32, shape (nnz,)
        Columns, ascending within each row.
    values : ndarray of shape (nnz,)
        SciPy's own constructor would copy a mapped array, and check what a kernel has just made.
    n_cols : int
        Width of the matrix.

    >>> rows = csr(np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.float32), 2)
    >>> rows.toarray(), rows.indptr.dtype
    (array([[0., 1.],
           [1., 0.]], dtype=float32), dtype('int32'))
    """
    shape = len(indptr) - 1, int(n_cols)
    if _KNOWN:  # SciPy's constructor takes as long as a search for one row does
        out = sp.csr_matrix.__new__(sp.csr_matrix)
        vars(out).update(_BLANK, _shape=shape)
    else:
        out = sp.csr_matrix(shape, dtype=values.dtype)
    out.indptr, out.indices, out.data = narrow_offsets(indptr), indices, values
    out.has_canonical_format = True
    return out


def narrow_offsets(indptr: Any) -> np.ndarray:
    """Return row offsets as int32 where they fit, else as int64."""
    fits = not len(indptr) or indptr[-1] <= _LARGEST
    return np.asarray(indptr, np.int32 if fits else np.int64)
