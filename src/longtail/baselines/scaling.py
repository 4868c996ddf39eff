"""Rows scaled by powers of two.

Multiplying by a power of two is exact, so similarities that are equal on paper stay equal in
floating point (whole numbers remain whole multiples of one unit) and ties go where the tie rule
says; and no product of two rows overflows, however large the features are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["ScaledRows", "scale_rows"]


@dataclass
class ScaledRows:
    """``X[i] = rows[i] * 2**exponents[i]`` with the largest entry of ``|rows[i]|`` in [0.5, 1).

    ``rows``: CSR or dense float32, like X; ``exponents`` (n,) int32, 0 for an empty row;
    ``inverse_norms`` (n,) float64: 1 / |rows[i]|, 0 for an empty row.
    """

    rows: Any
    exponents: np.ndarray
    inverse_norms: np.ndarray


def scale_rows(X: Any) -> ScaledRows:
    """Scale every row of canonical features (see ``longtail._validation``).

    >>> scale_rows(np.array([[3, 4], [0, 0]], np.float32)).rows
    array([[0.375, 0.5  ],
           [0.   , 0.   ]], dtype=float32)
    """
    if not sp.issparse(X):
        largest = np.abs(X).max(axis=1, initial=0)
        exponents = np.frexp(largest)[1]
        rows = np.ldexp(X, -exponents[:, None])
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        return ScaledRows(rows, exponents, _inverse(norms))
    n = X.shape[0]
    row_of = np.repeat(np.arange(n, dtype=np.int32), np.diff(X.indptr))
    filled = np.flatnonzero(np.diff(X.indptr))
    largest = np.zeros(n, np.float32)
    largest[filled] = np.maximum.reduceat(np.abs(X.data), X.indptr[filled]) if len(filled) else 0
    exponents = np.frexp(largest)[1]
    values = np.ldexp(X.data, -exponents[row_of])
    norms = np.sqrt(np.bincount(row_of, np.square(values, dtype=np.float64), minlength=n))
    rows = sp.csr_matrix((values, X.indices, X.indptr), shape=X.shape)
    return ScaledRows(rows, exponents, _inverse(norms))


def _inverse(norms: np.ndarray) -> np.ndarray:
    inverse = np.zeros_like(norms)
    np.divide(1.0, norms, out=inverse, where=norms > 0)
    return inverse
