"""References written from the definitions: small, slow and dense."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

WORKED = np.array([[0.9, 0.8, 0.1], [0.8, 0.7, 0.2], [0.7, 0.2, 0.3]])


def ratio(a, b):
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=np.asarray(b) > 0)


def f1(tp, fp, fn, tn):
    return ratio(2 * tp, 2 * tp + fp + fn)


CELLS: dict[str, Callable] = {
    "macro_precision": lambda tp, fp, fn, tn: ratio(tp, tp + fp),
    "macro_recall": lambda tp, fp, fn, tn: ratio(tp, tp + fn),
    "macro_f1": f1,
    "macro_jaccard": lambda tp, fp, fn, tn: ratio(tp, tp + fp + fn),
    "macro_balanced_accuracy": lambda tp, fp, fn, tn: (ratio(tp, tp + fn) + ratio(tn, tn + fp)) / 2,
    "macro_g_mean": lambda tp, fp, fn, tn: np.sqrt(ratio(tp, tp + fn) * ratio(tn, tn + fp)),
    "macro_h_mean": lambda tp, fp, fn, tn: ratio(
        2 * ratio(tp, tp + fn) * ratio(tn, tn + fp), ratio(tp, tp + fn) + ratio(tn, tn + fp)
    ),
    "macro_fowlkes_mallows": lambda tp, fp, fn, tn: ratio(tp, np.sqrt((tp + fp) * (tp + fn))),
}
METRICS = [*CELLS, "coverage", "precision"]


def expected(metric, eta, chosen, k=None, weight=0.0):
    """The objective of a binary matrix (..., n, m), from the definition."""
    eta = np.asarray(eta, np.float32).astype(np.float64)
    n = eta.shape[0]
    precision = (chosen * eta).sum(axis=(-1, -2)) / (n * k) if k else 0.0
    if metric == "precision":
        return precision
    if metric == "coverage":
        value = (1 - np.prod(1 - chosen * eta, axis=-2)).mean(axis=-1)
    else:
        tp = (chosen * eta).mean(axis=-2)
        fp = (chosen * (1 - eta)).mean(axis=-2)
        fn = ((1 - chosen) * eta).mean(axis=-2)
        tn = ((1 - chosen) * (1 - eta)).mean(axis=-2)
        function = CELLS[metric] if isinstance(metric, str) else metric
        value = function(tp, fp, fn, tn).mean(axis=-1)
    return (1 - weight) * value + weight * precision


def row_choices(m, k, exactly=True):
    """Every binary row with k (or at most k) ones."""
    sizes = [k] if exactly else range(k + 1)
    rows = [np.isin(np.arange(m), s) for c in sizes for s in itertools.combinations(range(m), c)]
    return np.array(rows, dtype=np.float64)


def brute_force(metric, eta, k, exactly=True, weight=0.0):
    n, m = eta.shape
    rows = row_choices(m, k, exactly)
    picks = np.array(list(itertools.product(range(len(rows)), repeat=n)))
    return expected(metric, eta, rows[picks], k, weight).max()


def as_binary(top, m):
    out = np.zeros((len(top), m))
    for i, labels in enumerate(top.indices):
        out[i, labels[labels >= 0]] = 1
    return out
