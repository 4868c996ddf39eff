"""An upper bound on what any answer can be expected to reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from longtail.decide.candidates import Candidates
from longtail.decide.prefixes import Prefixes
from longtail.decide.utilities import Constants, as_utility

__all__ = ["upper_bound"]


def upper_bound(
    found: Candidates,
    metric: str | Callable[..., Any],
    k: int,
    weight: float,
    constants: Constants,
) -> float:
    """Return the objective if every label could choose its rows freely, without the budget of k a
    row.

    For a given number q of rows, a utility that grows with t is largest on the q rows of largest
    eta, so each label's best is a prefix of its rows in that order. Precision is bounded by that of
    the k most probable labels of each row. Needs O(nnz log nnz) time and some 60 bytes an entry.
    """
    if found.n_rows == 0 or found.n_labels == 0:
        return 0.0
    precision, share = 0.0, 1 - weight
    if weight:
        best = Prefixes.of(found.rows(), found.values, found.values)
        hits = float(best.y[best.q <= k].sum())
        precision = weight * hits / (found.n_rows * k)
    if not share:
        return precision
    entries = Prefixes.of(found.indices, found.values, found.values)
    named = entries.label[entries.first]
    if metric == "coverage":
        with np.errstate(divide="ignore"):
            failure = np.exp(np.add.reduceat(np.log1p(-entries.y), entries.first))
        return precision + share * float((1 - failure).sum()) / found.n_labels
    utility, p = as_utility(metric), found.expected_positives() / found.n_rows
    none = np.zeros(found.n_labels)
    best_of = utility.value(none, none, p, constants)
    t, q = entries.t / found.n_rows, entries.q / found.n_rows
    value = utility.value(t, q, p[entries.label], constants)
    best_of[named] = np.maximum(best_of[named], np.maximum.reduceat(value, entries.first))
    return precision + share * float(best_of.mean())
