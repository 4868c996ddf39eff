"""Some of the labels: drawn at random, or the rare ones first."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail._validation import as_k, as_labels, as_seed
from longtail.metrics import frequency_bins

__all__ = ["tail_first", "uniform"]


def uniform(Y: Any, size: int, *, random_state: Any = 0) -> np.ndarray:
    """Return ``size`` label ids of ``Y`` (n, L), drawn at random, in ascending order.

    Parameters
    ----------
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    size : int
        How many labels.
    random_state : int, Generator or None, default=0
        Seed.

    >>> len(uniform([[0, 1], [2]], 2))
    2
    """
    n_labels = as_labels(Y).shape[1]
    return np.sort(_order(n_labels, random_state)[: _size(size, n_labels)])


def tail_first(Y: Any, size: int, *, n_bins: int = 5, random_state: Any = 0) -> np.ndarray:
    """Return ``size`` label ids of ``Y`` (n, L), rare ones first, in ascending order.

    Labels are cut into ``n_bins`` bins of equal volume by their frequency
    (``longtail.metrics.frequency_bins``). The bin of the rarest labels is taken whole, then the
    next one, and of the last bin that is needed, labels are drawn at random.

    Parameters
    ----------
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    size : int
        How many labels.
    n_bins : int, default=5
        Bins of labels by frequency, of equal positives.
    random_state : int, Generator or None, default=0
        Seed.

    >>> tail_first([[0, 1], [0, 2], [0, 1], [0, 1]], 2, n_bins=3)
    array([1, 2])
    """
    labels = as_labels(Y)
    bins = frequency_bins(labels, n_bins).bin_of_label
    order = _order(labels.shape[1], random_state)
    order = order[np.argsort(-bins[order], kind="stable")]
    return np.sort(order[: _size(size, labels.shape[1])])


def _order(n_labels: int, random_state: Any) -> np.ndarray:
    return np.random.default_rng([as_seed(random_state), 30]).permutation(n_labels)


def _size(size: Any, n_labels: int) -> int:
    if as_k(size, "size") > n_labels:
        raise ValueError(f"size is {size}, but there are {n_labels} labels")
    return int(size)
