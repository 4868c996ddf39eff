"""A vector per label, for clustering: from the rows it is positive for, from its text, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_features, as_k, as_labels

__all__ = ["concatenate", "pifa", "unit_rows"]


def pifa(
    X: Any,
    Y: Any,
    *,
    normalize_label_rows: bool = True,
    max_features_per_label: int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Positive instance feature aggregation: ``z_l = normalise(sum_i y_il x_i)``, (L, d) float32.

    CSR for sparse ``X`` (and for one of two blocks), dense for dense ``X``. A label without
    positives has a zero row.

    ``normalize_label_rows`` scales each row of Y to unit Euclidean length first, so that an
    instance with many labels says less about each of them. The reference code of XR-Linear does;
    the formula in the papers (False) does not. ``X`` is used as given: pass rows of unit length.

    ``max_features_per_label`` keeps the largest entries of each label's vector (in absolute value;
    before it is scaled to unit length), which bounds memory where millions of labels meet long
    documents. None keeps all. Refused for dense ``X``.

    >>> pifa([[1.0, 0.0], [0.0, 1.0]], [[0], [0, 1]], normalize_label_rows=False).round(3)
    array([[0.707, 0.707],
           [0.   , 1.   ]], dtype=float32)

    Yu et al., PECOS: prediction for enormous and correlated output spaces, JMLR 2022, section 3.1.
    """
    X = as_features(X, blocks=True)
    Y = as_labels(Y, n_rows=X.shape[0])
    if normalize_label_rows:
        Y = unit_rows(Y)
    rows_of_label = sp.csr_matrix(Y.T)
    threads = n_threads(n_jobs)
    if sp.issparse(X) or isinstance(X, BlockRows):
        keep = 0
        if max_features_per_label is not None:
            keep = as_k(max_features_per_label, "max_features_per_label")
        z_indptr, z_indices, z_values = core.sum_positive_rows_csr(
            csr_args(X if sp.issparse(X) else X.sparse),
            csr_args(rows_of_label),
            keep,
            threads,
            progress,
            None if sp.issparse(X) else X.dense,
        )
        return _csr(z_values, z_indices, z_indptr, (Y.shape[1], X.shape[1]))
    if max_features_per_label is not None:
        raise ValueError(
            "max_features_per_label is for sparse X: dense rows have no entries to drop"
        )
    out = np.empty((Y.shape[1], X.shape[1]), dtype=np.float32)
    core.sum_positive_rows_dense(X, csr_args(rows_of_label), threads, out, progress)
    return out


def unit_rows(matrix: Any) -> Any:
    """A copy with rows of unit Euclidean length; zero rows stay zero."""
    if not sp.issparse(matrix):
        norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
        norms[norms == 0] = 1
        return (matrix / norms[:, None]).astype(np.float32)
    squares = np.square(matrix.data, dtype=np.float64)
    lengths = np.diff(matrix.indptr)
    row_of = np.repeat(np.arange(matrix.shape[0]), lengths)
    norms = np.sqrt(np.bincount(row_of, weights=squares, minlength=matrix.shape[0]))
    norms[norms == 0] = 1
    values = (matrix.data / np.repeat(norms, lengths)).astype(np.float32)
    return _csr(values, matrix.indices, matrix.indptr, matrix.shape)


def concatenate(first: Any, second: Any) -> Any:
    """``[first | second]`` with rows of unit length; parts of unit length weigh the same."""
    if sp.issparse(first) or sp.issparse(second):
        both = sp.csr_matrix(sp.hstack([sp.csr_matrix(first), sp.csr_matrix(second)], format="csr"))
    else:
        both = np.concatenate([first, second], axis=1)
    return unit_rows(both)


def _csr(values: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """Without SciPy's checks, and keeping int64 row offsets."""
    out = sp.csr_matrix(shape, dtype=np.float32)
    out.data, out.indices, out.indptr = values, indices, indptr
    out.has_canonical_format = True
    return out
