"""A vector per label, for clustering: from the rows it is positive for, from its text, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._csr import csr
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_features, as_k, as_labels
from longtail.features.unit_length import unit_rows

__all__ = ["concatenate", "pifa"]


def pifa(
    X: Any,
    Y: Any,
    *,
    normalize_label_rows: bool = True,
    max_features_per_label: int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Return the positive instance feature aggregation: ``z_l = normalise(sum_i y_il x_i)``, (L, d)
    float32.

    CSR for sparse ``X`` (and for one of two blocks), dense for dense ``X``. A label without
    positives has a zero row.

    ``normalize_label_rows`` scales each row of Y to unit Euclidean length first, so that an
    instance with many labels says less about each of them. The reference code of XR-Linear does;
    the formula in the papers (False) does not. ``X`` is used as given: pass rows of unit length.

    ``max_features_per_label`` keeps the largest entries of each label's vector (in absolute value;
    before it is scaled to unit length), which bounds memory where millions of labels meet long
    documents. None keeps all. Refused for dense ``X``.

    Parameters
    ----------
    X : matrix of shape (n, d)
        Rows of features.
    Y : matrix of shape (n, L)
        Labels of the rows.
    normalize_label_rows : bool, default=True
        Scale the rows of labels to unit length.
    max_features_per_label : int, default=None
        Most features of a label.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.
    progress : callable, default=None
        Called with labels done and all of them.

    >>> pifa([[1.0, 0.0], [0.0, 1.0]], [[0], [0, 1]], normalize_label_rows=False).round(3)
    array([[0.707, 0.707],
           [0.   , 1.   ]], dtype=float32)

    Yu et al., PECOS: prediction for enormous and correlated output spaces, JMLR 2022, section 3.1.
    """
    X = as_features(X, blocks=True)
    Y = as_labels(Y, n_rows=X.shape[0])
    threads = n_threads(n_jobs)
    if normalize_label_rows:
        Y = unit_rows(Y, threads)
    rows_of_label = sp.csr_matrix(Y.T)
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
        return csr(z_indptr, z_indices, z_values, X.shape[1])
    if max_features_per_label is not None:
        raise ValueError(
            "max_features_per_label is for sparse X: dense rows have no entries to drop"
        )
    out = np.empty((Y.shape[1], X.shape[1]), dtype=np.float32)
    core.sum_positive_rows_dense(X, csr_args(rows_of_label), threads, out, progress)
    return out


def concatenate(first: Any, second: Any) -> Any:
    """Return ``[first | second]`` with rows of unit length; parts of unit length weigh the same."""
    if sp.issparse(first) or sp.issparse(second):
        both = sp.csr_matrix(sp.hstack([sp.csr_matrix(first), sp.csr_matrix(second)], format="csr"))
    else:
        both = np.concatenate([first, second], axis=1)
    return unit_rows(both)
