"""Micro metrics: the confusion counts of all labels are added up first.

Frequent labels dominate them; P@k is one of them, up to padding. Precision, recall and F1 are
ratios of sums over rows and have ``.rows``; the others combine two such ratios.
"""

from __future__ import annotations

from typing import Any, Protocol

from longtail.metrics.confusion import ConfusionCounts
from longtail.metrics.label_wise import Measure, of_measure
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


class PooledMetric(Protocol):
    """A measure of the counts of all rows and labels, added up."""

    def __call__(
        self, Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None
    ) -> float: ...


@row_wise
def micro_precision_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return hits of all rows over predictions of all rows.

    Equals P@k unless rows have fewer than k answers.

    >>> micro_precision_at_k([[0], [1]], [[0.9, 0.8], [0.9, 0.1]], k=1)
    0.5
    """
    m, k, how = matched(Y_true, top, k, compat)
    return Rows(m.hits(k), m.predicted(k) + how.epsilon, m.weights)


@row_wise
def micro_recall_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return hits of all rows over labels of all rows.

    Rows with many labels weigh more than in ``recall_at_k``.

    >>> round(micro_recall_at_k([[0, 1], [1]], [[0.9, 0.8], [0.1, 0.9]], k=1), 4)
    0.6667
    """
    m, k, how = matched(Y_true, top, k, compat)
    return Rows(m.hits(k), m.positives() + how.epsilon, m.weights)


@row_wise
def micro_f1_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return 2 tp / (2 tp + fp + fn) with counts over all rows and labels.

    >>> micro_f1_at_k([[0, 1], [1]], [[0.9, 0.8], [0.1, 0.9]], k=1)
    0.8
    """
    m, k, how = matched(Y_true, top, k, compat)
    return Rows(2 * m.hits(k), m.predicted(k) + m.positives() + how.epsilon, m.weights)


def _micro(measure: Measure, example: float) -> PooledMetric:
    def metric(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> float:
        m, k, how = matched(Y_true, top, k, compat)
        return float(measure(m.total_counts(k), how.epsilon * m.total_weight()))

    name = f"micro_{measure.__name__}_at_k"
    call = f"round({name}([[0, 1], [1]], [[0.9, 0.8], [0.1, 0.9]], k=1), 4)"
    start = "Return, with the counts of all rows and labels added up,"
    return of_measure(metric, name, measure, start, f"{call}\n{example}")


micro_balanced_accuracy_at_k = _micro(ConfusionCounts.balanced_accuracy, 0.8333)
micro_g_mean_at_k = _micro(ConfusionCounts.g_mean, 0.8165)
micro_fowlkes_mallows_at_k = _micro(ConfusionCounts.fowlkes_mallows, 0.8165)
