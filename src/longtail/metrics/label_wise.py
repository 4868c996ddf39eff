"""Macro metrics: a value from each label's own confusion counts, then the mean over labels.

``labels="all"`` averages over all L labels: a label that no row has, or no row predicts, counts as
0 where its measure is 0/0. ``labels="present"`` averages over the labels with a positive in
``Y_true``; say which one a number is. The two meanings of "G-mean" in the literature have two names
here: ``macro_g_mean_at_k`` (recall and specificity) and ``macro_fowlkes_mallows_at_k`` (precision
and recall).

E. Schultheis, M. Wydmuch, W. Kotłowski, R. Babbar and K. Dembczyński, "Generalized test utilities
for long-tail performance in extreme multi-label classification", NeurIPS 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from longtail.metrics.confusion import ConfusionCounts
from longtail.metrics.conventions import convention
from longtail.metrics.matching import matched

__all__ = [
    "confusion_at_k",
    "coverage_at_k",
    "macro_balanced_accuracy_at_k",
    "macro_f1_at_k",
    "macro_fowlkes_mallows_at_k",
    "macro_g_mean_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "reweightable",
]

_CHUNK = 1 << 15  # labels at a time: what is computed on the way stays in cache

F = TypeVar("F", bound=Callable[..., Any])


def reweightable(metric: F) -> F:
    """Mark a metric that honours the row weights of ``Matches``: the bootstrap uses them."""
    metric.reweightable = True  # type: ignore[attr-defined]
    return metric


def confusion_at_k(
    Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None
) -> ConfusionCounts:
    """Return confusion counts of every label when each row predicts its first k labels.

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

    >>> counts = confusion_at_k([[0, 2], [1]], np.array([[0.9, 0.8, 0.1], [0.9, 0.1, 0.2]]), k=1)
    >>> counts.true_positives, counts.predicted, counts.positives
    (array([1., 0., 0.]), array([2., 0., 0.]), array([1., 1., 1.]))
    """
    m, k, _ = matched(Y_true, top, k, compat)
    return m.label_counts(k)


def _macro(
    measure: Callable[[ConfusionCounts, float], np.ndarray],
    Y_true: Any,
    top: Any,
    k: int,
    labels: str,
    compat: str | None,
) -> float:
    """Return the mean over labels of ``measure(counts, epsilon)``."""
    m, k, how = matched(Y_true, top, k, compat)
    if labels not in ("all", "present"):
        raise ValueError(f"labels must be 'all' or 'present', got {labels!r}")
    counts = m.label_counts(k)
    last = _largest_id(counts) + 1 if how.macro_up_to_largest_id else m.n_labels
    total, number = 0.0, 0
    for start in range(0, last, _CHUNK):
        part = counts[start : min(start + _CHUNK, last)]
        values = measure(part, how.epsilon * counts.n_rows)
        if labels == "present":
            values = values[part.positives > 0]
        total, number = total + float(values.sum()), number + len(values)
    return total / number if number else 0.0


def _largest_id(counts: ConfusionCounts) -> int:
    occurs = np.flatnonzero((counts.positives > 0) | (counts.predicted > 0))
    return int(occurs[-1]) if len(occurs) else -1


@reweightable
def macro_precision_at_k(
    Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
) -> float:
    """Return the mean over labels of tp / (tp + fp); 0 for a label that is never predicted.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    labels : str, default="all"
        Which labels to average over: "all", or "present" in the truth.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> macro_precision_at_k([[0], [1]], np.array([[0.9, 0.8], [0.9, 0.1]]), k=1)
    0.25
    """
    return _macro(ConfusionCounts.precision, Y_true, top, k, labels, compat)


@reweightable
def macro_recall_at_k(
    Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
) -> float:
    """Return the mean over labels of tp / (tp + fn); 0 for a label that no row has.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    labels : str, default="all"
        Which labels to average over: "all", or "present" in the truth.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> macro_recall_at_k([[0], [1]], np.array([[0.9, 0.8], [0.9, 0.1]]), k=1)
    0.5
    """
    return _macro(ConfusionCounts.recall, Y_true, top, k, labels, compat)


@reweightable
def macro_f1_at_k(
    Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
) -> float:
    """Return the mean over labels of 2 tp / (2 tp + fp + fn); 0 for a label that no row has or
    predicts.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    labels : str, default="all"
        Which labels to average over: "all", or "present" in the truth.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> round(macro_f1_at_k([[0], [1]], np.array([[0.9, 0.8], [0.9, 0.1]]), k=1), 4)
    0.3333
    """
    return _macro(ConfusionCounts.f1, Y_true, top, k, labels, compat)


@reweightable
def macro_balanced_accuracy_at_k(
    Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
) -> float:
    """Return the mean over labels of (recall + specificity) / 2.

    Recall is tp / (tp + fn), specificity tn / (tn + fp). Close to 1/2 for every label that is never
    predicted, so with many labels it moves little.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    labels : str, default="all"
        Which labels to average over: "all", or "present" in the truth.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> macro_balanced_accuracy_at_k([[0], [1]], np.array([[0.9, 0.8], [0.9, 0.1]]), k=1)
    0.5
    """
    return _macro(ConfusionCounts.balanced_accuracy, Y_true, top, k, labels, compat)


@reweightable
def macro_g_mean_at_k(
    Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
) -> float:
    """Return the mean over labels of sqrt(recall * specificity).

    For sqrt(precision * recall), which some papers call G-mean too, see
    ``macro_fowlkes_mallows_at_k``.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    labels : str, default="all"
        Which labels to average over: "all", or "present" in the truth.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> macro_g_mean_at_k([[0], [1]], np.array([[0.9, 0.8], [0.1, 0.9]]), k=1)
    1.0
    """
    return _macro(ConfusionCounts.g_mean, Y_true, top, k, labels, compat)


@reweightable
def macro_fowlkes_mallows_at_k(
    Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
) -> float:
    """Return the mean over labels of sqrt(precision * recall).

    Some papers call it G-mean; the usual one is ``macro_g_mean_at_k``.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    labels : str, default="all"
        Which labels to average over: "all", or "present" in the truth.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> round(macro_fowlkes_mallows_at_k([[0], [1]], np.array([[0.9, 0.8], [0.9, 0.1]]), k=1), 4)
    0.3536
    """
    return _macro(ConfusionCounts.fowlkes_mallows, Y_true, top, k, labels, compat)


@reweightable
def coverage_at_k(
    Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
) -> float:
    """Return the fraction of labels that are predicted rightly at least once among all top-k
    predictions.

    Out of all L labels, or with ``labels="present"`` out of those that occur in ``Y_true`` (then 1
    is within reach).

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    k : int, default=5
        Answers per row that count.
    labels : str, default="all"
        Which labels to average over: "all", or "present" in the truth.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> scores = np.array([[0.9, 0.8, 0.0], [0.9, 0.1, 0.0]])
    >>> coverage_at_k([[0], [1]], scores, k=1, labels="present")
    0.5
    """
    if convention(compat).coverage_of_present:
        labels = "present"
    return _macro(_covered, Y_true, top, k, labels, compat)


def _covered(counts: ConfusionCounts, _: float) -> np.ndarray:
    return counts.true_positives > 0
