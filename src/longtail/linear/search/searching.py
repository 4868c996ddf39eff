"""Queries of every kind given to the native searcher: sparse rows, dense ones, or both blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._native import csr_args

__all__ = ["all_scores", "n_dense", "search"]


def n_dense(X: Any) -> int:
    """Return columns of the dense block, which a searcher is made for; 0 for other rows."""
    return int(X.dense.shape[1]) if isinstance(X, BlockRows) else 0


def search(searcher: Any, X: Any, *how: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and scores (n, k) of the best labels; ``how``: as ``search_sparse`` takes it."""
    if isinstance(X, BlockRows):
        found = searcher.search_blocks(csr_args(X.sparse), X.dense, *how)
    elif sp.issparse(X):
        found = searcher.search_sparse(csr_args(X), *how)
    else:
        found = searcher.search_dense(X, *how)
    return found  # type: ignore[no-any-return]


def all_scores(searcher: Any, X: Any, normalize: bool, n_threads: int) -> np.ndarray:
    """Return the raw scores of all children of the first layer, (n, n_children)."""
    if isinstance(X, BlockRows):
        found = searcher.scores_blocks(csr_args(X.sparse), X.dense, normalize, n_threads)
    elif sp.issparse(X):
        found = searcher.scores_sparse(csr_args(X), normalize, n_threads)
    else:
        found = searcher.scores_dense(X, normalize, n_threads)
    return found  # type: ignore[no-any-return]
