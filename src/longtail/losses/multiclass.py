"""Losses ``l_j(s)`` of one label against all scores, summed over the labels of a row with weights.

=============  =================================================================
name           ``l_j(s)``
=============  =================================================================
softmax        ``log sum_i e^{s_i} - s_j``
binary losses  ``l1(s_j) + sum_{i != j} l0(s_i)``: label j is the only positive
=============  =================================================================
"""

from __future__ import annotations

import numpy as np

from longtail.losses.binary import BINARY_LOSSES, BinaryLoss, as_binary
from longtail.losses.observed import LossValue, Observed

__all__ = ["MULTICLASS", "sum_over_picks"]

MULTICLASS = ("softmax", *BINARY_LOSSES)


def sum_over_picks(observed: Observed, base: str | BinaryLoss, weights: np.ndarray) -> LossValue:
    """Return ``sum_j w_j l_j(s)``, with the weights of the observed labels."""
    if isinstance(base, str) and base not in MULTICLASS:
        raise ValueError(
            f"base must be one of {', '.join(MULTICLASS)}, or a BinaryLoss, got {base!r}"
        )
    s, at = observed.scores, (observed.rows, observed.columns)
    total = _row_sums(observed, weights)
    if base == "softmax":
        top = s.max(axis=1, keepdims=True, initial=-np.inf)
        shifted = np.exp(s - top)
        mass = shifted.sum(axis=1, keepdims=True)
        gradient = total[:, None] * (shifted / mass)
        gradient[at] -= weights
        own = np.log(mass[observed.rows, 0]) - (s - top)[at]
        return LossValue(_row_sums(observed, weights * own), gradient)
    loss = as_binary(base)
    value0, slope0 = loss.negative(s)
    value1, slope1 = loss.positive(s[at])
    value = total * value0.sum(axis=1)
    value += _row_sums(observed, weights * (value1 - value0[at]))
    gradient = total[:, None] * slope0
    gradient[at] += weights * (slope1 - slope0[at])
    return LossValue(value, gradient)


def _row_sums(observed: Observed, values: np.ndarray) -> np.ndarray:
    """Float64, also where no row has a label, of which ``bincount`` would make integers."""
    sums = np.bincount(observed.rows, values, minlength=len(observed.scores))
    return sums.astype(np.float64, copy=False)
