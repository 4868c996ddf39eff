"""Balanced 2-means over sparse or dense rows, for trees of labels and batches of queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args, n_threads
from longtail._validation import as_features, as_k, as_seed
from longtail.tree.shape import TreeShape, balanced_shape

__all__ = ["balanced_clusters", "cluster_order"]

_LARGE = 1 << 20  # entries from which on one split is spread over the threads


def cluster_order(
    features: Any,
    shape: TreeShape,
    *,
    seed: int,
    max_iter: int = 20,
    spherical: bool = True,
    n_jobs: int | None = None,
    large: int = _LARGE,
    progress: Callable[[int, int], object] | None = None,
) -> np.ndarray:
    """Return the rows of ``features`` (CSR or dense float32) in an order that fits ``shape``,
    int32.

    Carries out ``shape.splits`` round by round. A split starts from two distinct random members,
    scores every member by <c_right - c_left, z>, gives the lowest scores to the left (ties to the
    smaller row), recomputes the centroids, and stops when nothing moved or after ``max_iter``
    assignments. Rows within a last cluster ascend. The same for any number of threads.
    """
    order = np.arange(features.shape[0], dtype=np.int32)
    if not len(shape.splits):
        return order
    plan = (
        np.ascontiguousarray(shape.splits, dtype=np.int64),
        np.ascontiguousarray(shape.round_ptr, dtype=np.int64),
        max_iter,
        spherical,
        seed,
        large,
        n_threads(n_jobs),
        order,
        progress,
    )
    if sp.issparse(features):
        core.balanced_splits_csr(csr_args(features), *plan)
    else:
        core.balanced_splits_dense(features, *plan)
    return order


def balanced_clusters(
    rows: Any,
    n_clusters: int,
    *,
    max_iter: int = 20,
    spherical: bool = True,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return the cluster number of each row, int32 (n), with cluster sizes that differ by at most
    one.

    Recursive balanced 2-means: for batches of similar queries as well as for labels. With
    ``spherical`` rows should be of unit length, and centroids are; otherwise centroids are means,
    and a split is the balanced cut by Euclidean distance. Neighbouring numbers are alike: they part
    late.

    Parameters
    ----------
    rows : matrix of shape (n, d)
        (n, d), sparse or dense; more clusters than rows are refused.
    n_clusters : int
        Number of clusters.
    max_iter : int, default=20
        Most passes.
    spherical : bool, default=True
        By cosine instead of distance.
    random_state : int, Generator or None, default=0
        Seed.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.

    >>> balanced_clusters([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]], 2).tolist()
    [1, 0, 1, 0]
    """
    rows = as_features(rows, name="rows")
    n_rows, n_clusters = rows.shape[0], as_k(n_clusters, "n_clusters")
    if n_clusters > n_rows:
        raise ValueError(f"cannot make {n_clusters} clusters of {n_rows} rows")
    shape = balanced_shape([n_clusters, n_rows])
    order = cluster_order(
        rows,
        shape,
        seed=as_seed(random_state),
        max_iter=as_k(max_iter, "max_iter"),
        spherical=spherical,
        n_jobs=n_jobs,
    )
    clusters = np.empty(n_rows, dtype=np.int32)
    clusters[order] = np.repeat(np.arange(n_clusters, dtype=np.int32), np.diff(shape.child_ptr[-1]))
    return clusters
