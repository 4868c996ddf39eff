"""An upper bound on what any answer can be expected to reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from longtail.decide.candidates import Candidates
from longtail.decide.utilities import MACRO, Constants

__all__ = ["upper_bound"]


def upper_bound(
    found: Candidates,
    metric: str | Callable[..., Any],
    k: int,
    *,
    precision_weight: float = 0.0,
    beta: float = 1.0,
    epsilon: float = 0.0,
) -> float:
    """Return the objective if every label could choose its rows freely, without the budget of k a
    row.

    For a given number q of rows, a utility that grows with t is largest on the q rows of largest
    eta, so each label's best is a prefix of its rows in that order. Precision is bounded by that of
    the k most probable labels of each row. Needs O(nnz log nnz) time and some 40 bytes an entry.
    """
    if found.n_rows == 0 or found.n_labels == 0:
        return 0.0
    precision = 0.0
    weight = 1.0 if metric == "precision" else precision_weight
    if weight:
        order = np.lexsort((-found.values, found.rows()))
        place = np.arange(len(order)) - np.repeat(found.indptr[:-1], np.diff(found.indptr))
        best = found.values[order][place < k].sum(dtype=np.float64)
        precision = weight * float(best) / (found.n_rows * k)
    if weight == 1:
        return precision
    order = np.lexsort((-found.values, found.indices))
    labels, eta = found.indices[order], found.values[order].astype(np.float64)
    first = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]]) if len(labels) else labels
    if metric == "coverage":
        with np.errstate(divide="ignore"):
            failure = np.exp(np.add.reduceat(np.log1p(-eta), first)) if len(first) else first
        return precision + (1 - weight) * float((1 - failure).sum()) / found.n_labels
    lengths = np.diff(np.r_[first, len(labels)])
    t = _cumulative(eta, first, lengths) / found.n_rows
    q = (np.arange(len(labels)) - np.repeat(first, lengths) + 1) / found.n_rows
    everyone = found.expected_positives() / found.n_rows
    value = _values(metric, Constants(beta**2, epsilon))
    best_of = value(np.zeros(found.n_labels), np.zeros(found.n_labels), everyone)
    if len(first):
        named = np.maximum.reduceat(value(t, q, everyone[labels]), first)
        best_of[labels[first]] = np.maximum(best_of[labels[first]], named)
    return precision + (1 - weight) * float(best_of.mean())


def _values(metric: str | Callable[..., Any], constants: Constants) -> Callable[..., np.ndarray]:
    if isinstance(metric, str):
        utility = MACRO[metric]
        return lambda t, q, p: utility.value(t, q, p, constants)
    return lambda t, q, p: np.asarray(
        metric(t, np.maximum(q - t, 0), np.maximum(p - t, 0), np.maximum(1 - q - p + t, 0)),
        dtype=np.float64,
    )


def _cumulative(values: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return running sums that start anew at every position in ``first``."""
    total = np.cumsum(values)
    before = total[first] - values[first] if len(first) else total
    return np.asarray(total - np.repeat(before, lengths))
