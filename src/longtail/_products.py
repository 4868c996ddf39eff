"""Matrix products that keep the house rules: any number of threads, the same bits; a row's result
depends on nothing but the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args

__all__ = ["PackedRows", "pattern_products", "times_dense"]


def times_dense(
    X: Any,
    dense: np.ndarray,
    n_threads: int,
    *,
    bias: np.ndarray | None = None,
    relu: bool = False,
) -> np.ndarray:
    """Return ``X @ dense + bias`` for CSR or dense float32 ``X`` (n, m) and ``dense`` (m, c).

    >>> times_dense(np.eye(2, dtype=np.float32), np.array([[1, -2], [3, 4]], np.float32), 1)
    array([[ 1., -2.],
           [ 3.,  4.]], dtype=float32)
    """
    dense = np.ascontiguousarray(dense, dtype=np.float32)
    if sp.issparse(X):
        return core.sparse_product(csr_args(X), dense, bias, relu, n_threads)  # type: ignore[no-any-return]
    return core.dense_product(X, dense, bias, relu, n_threads)  # type: ignore[no-any-return]


def pattern_products(pattern: sp.csr_matrix, rows: np.ndarray, n_threads: int) -> np.ndarray:
    """Return ``<row i, row j>`` for every stored entry (i, j) of ``pattern`` (n, n), in its order,
    from ``rows`` (n, c) float32.

    >>> pattern = sp.csr_matrix(np.array([[0, 1], [0, 1]], np.float32))
    >>> pattern_products(pattern, np.array([[1, 2], [3, 4]], np.float32), 1)
    array([11., 25.], dtype=float32)
    """
    indptr, indices, _, n_cols = csr_args(pattern)
    return core.pattern_product(indptr, indices, n_cols, rows, rows, n_threads)  # type: ignore[no-any-return]


class PackedRows:
    """Rows (n, d) in blocks of 16 side by side, so that one vector operation serves 16 rows.

    ``blocks`` (ceil(n / 16), d, 16) float32; spare lanes are zero.
    """

    def __init__(self, rows: np.ndarray) -> None:
        n, d = rows.shape
        padded = np.zeros((-(-n // 16), 16, d), np.float32)
        padded.reshape(16 * len(padded), d)[:n] = rows
        self.n_rows = n
        self.blocks = np.ascontiguousarray(padded.transpose(0, 2, 1))

    def top(
        self, queries: np.ndarray, k: int, n_threads: int, bias: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and values (n, k) of the k largest ``<query, row> + bias``; padded with -1,
        -inf.
        """
        return core.top_inner_products(  # type: ignore[no-any-return]
            self.blocks, self.n_rows, bias, queries, k, n_threads
        )

    def products(
        self, queries: np.ndarray, n_threads: int, bias: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the products with every packed row, shape (n, n_rows)."""
        return core.inner_products(  # type: ignore[no-any-return]
            self.blocks, self.n_rows, bias, queries, n_threads
        )
