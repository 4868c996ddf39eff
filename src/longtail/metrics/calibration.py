"""Do probabilities keep their word? Of pairs given 0.3, three in ten should be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._validation import as_k
from longtail.metrics.matching import match

__all__ = ["Reliability", "expected_calibration_error", "reliability"]


@dataclass(frozen=True)
class Reliability:
    """Answered pairs of row and label in bins of equal mass, by rising probability; (B,) each.

    ``count``: pairs; ``proba``: their mean probability; ``hit_rate``: the share that is true (the
    mean truth value, for soft labels). Plotted against each other they lie on the diagonal if the
    probabilities are right.
    """

    count: np.ndarray
    proba: np.ndarray
    hit_rate: np.ndarray

    @property
    def error(self) -> float:
        """The expected calibration error of these bins."""
        total = self.count.sum()
        gaps = np.abs(self.proba - self.hit_rate)
        return float((self.count * gaps).sum() / total) if total else 0.0


def reliability(
    Y_true: Any, top: Any, k: int = 5, *, n_bins: int = 15, labels: Any = None
) -> Reliability:
    """Return the mean probability and hit rate of the first k answers of every row, in bins of
    equal mass.

    The scores of ``top`` must be probabilities; empty slots are no pairs.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    n_bins : int, default=15
        Number of bins.
    labels : mask of shape (L,), default=None
        A mask (L,) of labels to look at, for instance the rare ones. Pairs of equal probability
        are in the order of rows; fewer pairs than bins make fewer bins.

    >>> import longtail as lt
    >>> top = lt.TopK([[0, 1], [1, 0]], [[0.9, 0.2], [0.8, 0.3]], n_labels=2)
    >>> reliability([[0], [1]], top, k=2, n_bins=2).hit_rate
    array([0., 1.])
    """
    n_bins, k = as_k(n_bins, "n_bins"), as_k(k)
    matches = match(Y_true, top, k)
    ids = matches.top.indices[:, :k]
    answered = ids >= 0
    proba = matches.top.scores[:, :k][answered].astype(np.float64)
    if len(proba) and not (proba.min() >= 0 and proba.max() <= 1):
        raise ValueError(
            f"scores of top are no probabilities: they go from {proba.min():g} to {proba.max():g}; "
            "use predict_proba_topk"
        )
    hits = matches.gains[:, :k][answered].astype(np.float64)
    if labels is not None:
        mask = np.asarray(labels)
        if mask.dtype != bool or mask.shape != (matches.n_labels,):
            raise ValueError(f"labels must be a boolean mask of {matches.n_labels} labels")
        chosen = mask[ids[answered]]
        proba, hits = proba[chosen], hits[chosen]
    order = np.argsort(proba, kind="stable")
    edges = np.linspace(0, len(order), min(n_bins, len(order)) + 1).round().astype(np.int64)
    starts, count = edges[:-1], np.diff(edges)
    if not len(order):
        starts = count = np.zeros(0, np.int64)
        return Reliability(count, np.zeros(0), np.zeros(0))
    return Reliability(
        count,
        np.add.reduceat(proba[order], starts) / count,
        np.add.reduceat(hits[order], starts) / count,
    )


def expected_calibration_error(
    Y_true: Any, top: Any, k: int = 5, *, n_bins: int = 15, labels: Any = None
) -> float:
    """Return the ECE, ``sum_b (n_b / n) |mean probability of bin b - hit rate of bin b|``.

    Over all pairs of a row and one of its first k answers, in ``n_bins`` bins of equal mass
    (Naeini, Cooper and Hauskrecht 2015; equal mass as in Nixon et al. 2019). 0 is best. Arguments
    as for ``reliability``.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    n_bins : int, default=15
        Number of bins.
    labels : mask of shape (L,), default=None
        Labels to look at; None is all.

    >>> import longtail as lt
    >>> top = lt.TopK([[0], [0]], [[0.75], [0.75]], n_labels=2)
    >>> expected_calibration_error([[0], [1]], top, k=1, n_bins=1)
    0.25
    """
    return reliability(Y_true, top, k, n_bins=n_bins, labels=labels).error
