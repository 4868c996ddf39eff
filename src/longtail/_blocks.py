"""``BlockRows``: rows of two blocks, sparse features and a dense vector each."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._csr import csr

__all__ = ["BlockRows"]


class BlockRows:
    """The columns of ``sparse`` (n, d) CSR float32 and, after them, those of ``dense`` (n, e).

    Made by ``longtail.features.beside``. Stands for the matrix (n, d + e), and is one to all that a
    ranker does with rows: it has a ``shape``, and rows are taken with a slice, an array of row
    numbers or a mask. Linear models train and search on the blocks; to everything else it is the
    CSR matrix (``tocsr``).
    """

    ndim = 2

    def __init__(self, sparse: sp.csr_matrix, dense: np.ndarray) -> None:
        if sparse.shape[0] != dense.shape[0]:
            raise ValueError(
                f"the sparse block has {sparse.shape[0]} rows but the dense one {dense.shape[0]}: "
                "they must describe the same rows, in order"
            )
        self.sparse, self.dense = sparse, dense

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d + e)``."""
        return int(self.sparse.shape[0]), int(self.sparse.shape[1] + self.dense.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.dense.dtype

    @property
    def nnz(self) -> int:
        """Entries of the CSR matrix."""
        return int(self.sparse.nnz + self.dense.size)

    def __len__(self) -> int:
        return int(self.sparse.shape[0])

    def __getitem__(self, rows: Any) -> BlockRows:
        if isinstance(rows, tuple):
            raise TypeError(
                "rows of two blocks have no columns to choose: take tocsr()[rows, columns]"
            )
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            rows = [rows]
        return BlockRows(self.sparse[rows], np.ascontiguousarray(self.dense[rows]))

    def __repr__(self) -> str:
        n, _ = self.shape
        return (
            f"<{n} rows of {self.sparse.shape[1]} sparse and {self.dense.shape[1]} dense columns>"
        )

    def tocsr(self) -> sp.csr_matrix:
        """Return the same as one CSR matrix (n, d + e), every number of the dense block an entry.

        >>> rows = BlockRows(sp.csr_matrix([[0.0, 2.0]]), np.array([[0.5, 0.0]]))
        >>> rows.tocsr().toarray()
        array([[0. , 2. , 0.5, 0. ]], dtype=float32)
        """
        left, (n, width) = self.sparse, self.dense.shape
        counts = np.diff(left.indptr)
        indptr = left.indptr.astype(np.int64) + width * np.arange(n + 1)
        indices = np.empty(indptr[-1], np.int32)
        values = np.empty(indptr[-1], np.float32)
        own = np.repeat(indptr[:-1] - left.indptr[:-1], counts) + np.arange(left.nnz)
        indices[own], values[own] = left.indices, left.data
        rest = (indptr[:-1] + counts)[:, None] + np.arange(width)
        indices[rest] = left.shape[1] + np.arange(width, dtype=np.int32)
        values[rest] = self.dense
        return csr(indptr, indices, values, self.shape[1])

    def toarray(self) -> np.ndarray:
        """Return the same as one dense array (n, d + e)."""
        return np.concatenate([self.sparse.toarray(), self.dense], axis=1)
