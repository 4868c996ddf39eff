"""Micro metrics: the confusion counts of all labels are added up first.

Frequent labels dominate them; P@k is one of them, up to padding. Precision, recall and F1 are
ratios of sums over rows and have ``.rows``; the others combine two such ratios.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from longtail.metrics.confusion import ConfusionCounts
from longtail.metrics.label_wise import reweightable
from longtail.metrics.matching import matched
from longtail.metrics.rows import Rows, row_wise

__all__ = [
    "micro_balanced_accuracy_at_k",
    "micro_f1_at_k",
    "micro_fowlkes_mallows_at_k",
    "micro_g_mean_at_k",
    "micro_precision_at_k",
    "micro_recall_at_k",
]


@row_wise
def micro_precision_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return hits of all rows over predictions of all rows.

    Equals P@k unless rows have fewer than k answers.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> micro_precision_at_k([[0], [1]], np.array([[0.9, 0.8], [0.9, 0.1]]), k=1)
    0.5
    """
    m, k, how = matched(Y_true, top, k, compat)
    return Rows(m.hits(k), m.predicted(k) + how.epsilon, m.weights)


@row_wise
def micro_recall_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return hits of all rows over labels of all rows.

    Rows with many labels weigh more than in ``recall_at_k``.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> round(micro_recall_at_k([[0, 1], [1]], np.array([[0.9, 0.8], [0.1, 0.9]]), k=1), 4)
    0.6667
    """
    m, k, how = matched(Y_true, top, k, compat)
    return Rows(m.hits(k), m.positives() + how.epsilon, m.weights)


@row_wise
def micro_f1_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return 2 tp / (2 tp + fp + fn) with counts over all rows and labels.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> micro_f1_at_k([[0, 1], [1]], np.array([[0.9, 0.8], [0.1, 0.9]]), k=1)
    0.8
    """
    m, k, how = matched(Y_true, top, k, compat)
    return Rows(2 * m.hits(k), m.predicted(k) + m.positives() + how.epsilon, m.weights)


def _micro(
    measure: Callable[[ConfusionCounts, float], np.ndarray],
    Y_true: Any,
    top: Any,
    k: int,
    compat: str | None,
) -> float:
    m, k, how = matched(Y_true, top, k, compat)
    return float(measure(m.total_counts(k), how.epsilon * m.total_weight()))


@reweightable
def micro_balanced_accuracy_at_k(
    Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None
) -> float:
    """Return (recall + specificity) / 2 with counts over all rows and labels.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> micro_balanced_accuracy_at_k([[0], [1]], np.array([[0.9, 0.8], [0.1, 0.9]]), k=1)
    1.0
    """
    return _micro(ConfusionCounts.balanced_accuracy, Y_true, top, k, compat)


@reweightable
def micro_g_mean_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> float:
    """Return sqrt(recall * specificity) with counts over all rows and labels.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> micro_g_mean_at_k([[0], [1]], np.array([[0.9, 0.8], [0.1, 0.9]]), k=1)
    1.0
    """
    return _micro(ConfusionCounts.g_mean, Y_true, top, k, compat)


@reweightable
def micro_fowlkes_mallows_at_k(
    Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None
) -> float:
    """Return sqrt(precision * recall) with counts over all rows and labels.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> round(micro_fowlkes_mallows_at_k([[0, 1], [1]], np.array([[0.9, 0.8], [0.1, 0.9]]), k=1), 4)
    0.8165
    """
    return _micro(ConfusionCounts.fowlkes_mallows, Y_true, top, k, compat)
