"""``beside``: sparse and dense features of the same rows, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._validation import as_features, check_same_rows
from longtail.features.unit_length import unit_rows

__all__ = ["beside"]


def beside(X: Any, vectors: Any, *, weight: float = 1.0, n_threads: int = 1) -> BlockRows:
    """Return rows of ``X`` (n, d) and ``vectors`` (n, e) side by side, as rows (n, d + e).

    Both are scaled to unit length first, the vectors then by ``weight``: neither drowns the other,
    however many numbers it has. Models take the rows for ``X``; ``XRLinear`` and ``OneVsAll`` read
    the dense block as such, which is faster than the same numbers as entries of a sparse matrix.

    Parameters
    ----------
    X : matrix of shape (n, d)
        Features, say TF-IDF.
    vectors : array of shape (n, e)
        What an encoder makes of the same texts.
    weight : float, default=1.0
        What the vectors are multiplied with.
    n_threads : int, default=1
        Number of threads.

    >>> import longtail as lt
    >>> rows = lt.features.beside([[3.0, 4.0], [0.0, 1.0]], [[0.0, 2.0], [1.0, 0.0]])
    >>> rows.toarray()
    array([[0.6, 0.8, 0. , 1. ],
           [0. , 1. , 1. , 0. ]], dtype=float32)
    >>> model = lt.OneVsAll(normalize=False).fit(rows, [[0], [1]])
    >>> model.predict_topk(rows, k=1).indices.ravel()
    array([0, 1], dtype=int32)
    """
    sparse = sp.csr_matrix(as_features(X))
    dense = as_features(vectors, name="vectors")
    if sp.issparse(dense):
        raise TypeError(
            "vectors must be dense: sparse features go side by side with scipy's hstack"
        )
    check_same_rows(sparse.shape[0], len(dense), "X", "vectors")
    if not (np.isfinite(weight) and weight >= 0):
        raise ValueError(f"weight must be finite and not negative, got {weight}")
    scaled = unit_rows(dense, n_threads) * np.float32(weight)
    return BlockRows(unit_rows(sparse, n_threads), scaled)
