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

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from longtail.metrics.confusion import ConfusionCounts
from longtail.metrics.conventions import convention
from longtail.metrics.docstrings import with_parameters
from longtail.metrics.matching import matched

__all__ = [
    "LabelMetric",
    "Measure",
    "confusion_at_k",
    "coverage_at_k",
    "macro_balanced_accuracy_at_k",
    "macro_f1_at_k",
    "macro_fowlkes_mallows_at_k",
    "macro_g_mean_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "of_measure",
]

_CHUNK = 1 << 15  # labels at a time: what is computed on the way stays in cache

Measure = Callable[[ConfusionCounts, float], np.ndarray]
F = TypeVar("F", bound=Callable[..., Any])


class LabelMetric(Protocol):
    """A mean over labels."""

    def __call__(
        self, Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
    ) -> float: ...


@with_parameters
def confusion_at_k(
    Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None
) -> ConfusionCounts:
    """Return confusion counts of every label when each row predicts its first k labels.

    >>> counts = confusion_at_k([[0, 2], [1]], [[0.9, 0.8, 0.1], [0.9, 0.1, 0.2]], k=1)
    >>> counts.true_positives, counts.predicted, counts.positives
    (array([1., 0., 0.]), array([2., 0., 0.]), array([1., 1., 1.]))
    """
    m, k, _ = matched(Y_true, top, k, compat)
    return m.label_counts(k)


def reweightable(metric: F) -> F:
    """Mark a metric that honours the row weights of ``Matches``: the bootstrap uses them."""
    metric.reweightable = True  # type: ignore[attr-defined]
    return with_parameters(metric)


def of_measure(metric: F, name: str, measure: Measure, start: str, example: str) -> F:
    """Name a metric made of a measure of confusion counts, with a docstring from that of the
    measure.
    """
    metric.__name__ = metric.__qualname__ = name
    meaning = (inspect.getdoc(measure) or "").partition("\n\nParameters")[0]
    metric.__doc__ = f"{start} {meaning.removeprefix('Return ')}\n\n>>> {example}\n"
    return reweightable(metric)


def _mean_over_labels(
    measure: Measure, Y_true: Any, top: Any, k: int, labels: str, compat: str | None
) -> float:
    m, k, how = matched(Y_true, top, k, compat)
    if labels not in ("all", "present"):
        raise ValueError(f"labels must be 'all' or 'present', got {labels!r}")
    counts = m.label_counts(k)
    last = m.n_labels
    if how.macro_up_to_largest_id:
        occurs = np.flatnonzero((counts.positives > 0) | (counts.predicted > 0))
        last = int(occurs[-1]) + 1 if len(occurs) else 0
    total, number = 0.0, 0
    for start in range(0, last, _CHUNK):
        part = counts[start : min(start + _CHUNK, last)]
        values = measure(part, how.epsilon * counts.n_rows)
        if labels == "present":
            values = values[part.positives > 0]
        total, number = total + float(values.sum()), number + len(values)
    return total / number if number else 0.0


def _macro(measure: Measure, example: float) -> LabelMetric:
    def metric(
        Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
    ) -> float:
        return _mean_over_labels(measure, Y_true, top, k, labels, compat)

    name = f"macro_{measure.__name__}_at_k"
    call = f"round({name}([[0], [1]], [[0.9, 0.8], [0.9, 0.1]], k=1), 4)"
    start = "Return the mean over labels of"
    return of_measure(metric, name, measure, start, f"{call}\n{example}")


macro_precision_at_k = _macro(ConfusionCounts.precision, 0.25)
macro_recall_at_k = _macro(ConfusionCounts.recall, 0.5)
macro_f1_at_k = _macro(ConfusionCounts.f1, 0.3333)
macro_balanced_accuracy_at_k = _macro(ConfusionCounts.balanced_accuracy, 0.5)
macro_g_mean_at_k = _macro(ConfusionCounts.g_mean, 0.0)
macro_fowlkes_mallows_at_k = _macro(ConfusionCounts.fowlkes_mallows, 0.3536)


@reweightable
def coverage_at_k(
    Y_true: Any, top: Any, k: int = 5, *, labels: str = "all", compat: str | None = None
) -> float:
    """Return the fraction of labels that are predicted rightly at least once among all top-k
    predictions.

    Out of all L labels, or with ``labels="present"`` out of those that occur in ``Y_true`` (then 1
    is within reach).

    >>> scores = [[0.9, 0.8, 0.0], [0.9, 0.1, 0.0]]
    >>> coverage_at_k([[0], [1]], scores, k=1, labels="present")
    0.5
    """
    if convention(compat).coverage_of_present:
        labels = "present"
    return _mean_over_labels(_covered, Y_true, top, k, labels, compat)


def _covered(counts: ConfusionCounts, _: float) -> np.ndarray:
    return counts.true_positives > 0
