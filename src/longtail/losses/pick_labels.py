"""Reductions to multi-class losses: pick all labels of a row, all with shares, or one.

A loss ``l_j(s)`` of one label against all scores is summed over the labels of a row with weights:

=============  =================================================================
name           ``l_j(s)``
=============  =================================================================
softmax        ``log sum_i e^{s_i} - s_j``
binary losses  ``l1(s_j) + sum_{i != j} l0(s_i)``: label j is the only positive
=============  =================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_seed
from longtail.losses.binary import BINARY_LOSSES, BinaryLoss, as_binary
from longtail.losses.observed import LossValue, Observed, check_inputs
from longtail.losses.row_weights import normalized_weights

__all__ = ["PAL", "PALN", "POL", "pick_one"]


MULTICLASS = ("softmax", *BINARY_LOSSES)


def _sum_over_picks(observed: Observed, base: str | BinaryLoss, weights: np.ndarray) -> LossValue:
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


@dataclass(frozen=True)
class PAL:
    """Pick all labels: ``sum_j (y_j/p_j) l_j(s)``.

    Unbiased, with weights that are never negative: a loss to train with as it is. Its optimum
    orders labels by their probability, as precision at k wants.

    Parameters
    ----------
    base : str or BinaryLoss, default="softmax"
        "softmax", or a binary loss that takes the picked label for the only one.

    >>> PAL()([[0.0, 0.0]], [{0, 1}], [0.5, 1.0]).value.round(6)
    array([2.079442])

    Menon et al. 2019; Schultheis and Babbar 2021.
    """

    base: str | BinaryLoss = "softmax"

    def __call__(self, scores: Any, Y: Any, propensity: Any = None) -> LossValue:
        observed = check_inputs(scores, Y, propensity)
        return _sum_over_picks(observed, self.base, observed.values * observed.inverse)


@dataclass(frozen=True)
class PALN:
    """Pick all labels, normalised: ``sum_j T_j l_j(s)``, where ``T_j = y_j / (1 + sum_{i != j}
    y_i)``: every row counts once. Its optimum orders labels by their part in recall at k.

    ``estimate`` of ``T_j`` from observed labels: "bound", which bounds the loss from above on
    average, or "unbiased", which is negative for some rows and cannot be trained with.

    Parameters
    ----------
    base : str or BinaryLoss, default="softmax"
        A binary loss, or its name.
    estimate : {"bound", "unbiased"}, default="bound"
        How ``T_j`` is estimated from observed labels.

    >>> PALN()([[0.0, 0.0]], [{0, 1}]).value.round(6)
    array([0.693147])

    Menon et al. 2019; Schultheis and Babbar 2021. SupCon over the full pool of labels is this loss.
    """

    base: str | BinaryLoss = "softmax"
    estimate: str = "bound"

    def __call__(self, scores: Any, Y: Any, propensity: Any = None) -> LossValue:
        observed = check_inputs(scores, Y, propensity)
        share = normalized_weights(observed.labels, observed.propensity, estimate=self.estimate)
        return _sum_over_picks(observed, self.base, share.data)


@dataclass(frozen=True)
class POL:
    """Pick one label: ``|T| l_j(s)`` for one label j of the row, drawn with probability
    ``T_j/|T|``, ``|T| = sum_j T_j``. On average over draws this is ``PALN`` with the bound.

    With complete labels ``|T| = 1``, and any label of the row is as likely.

    Parameters
    ----------
    base : str or BinaryLoss, default="softmax"
        A binary loss, or its name.
    random_state : int or Generator, default=0
        An int draws the same labels in every call; a Generator draws anew.

    >>> POL()([[0.0, 0.0]], [{0, 1}]).value.round(6)
    array([0.693147])

    Menon et al. 2019.
    """

    base: str | BinaryLoss = "softmax"
    random_state: Any = 0

    def __call__(self, scores: Any, Y: Any, propensity: Any = None) -> LossValue:
        observed = check_inputs(scores, Y, propensity)
        share = normalized_weights(observed.labels, observed.propensity)
        return _sum_over_picks(observed, self.base, pick_one(share, self.random_state))


def pick_one(share: sp.csr_matrix, random_state: Any) -> np.ndarray:
    """Return, beside ``share.data``, the row's total at one entry, drawn by its share, and 0
    elsewhere.
    """
    rng = np.random.default_rng(as_seed(random_state))
    sizes = np.diff(share.indptr)
    rows = np.repeat(np.arange(share.shape[0]), sizes)
    total = np.bincount(rows, share.data, minlength=share.shape[0])
    point = rng.random(share.shape[0]) * total
    # Cumulative shares within each row: those of all rows together, less what came before.
    running = np.cumsum(share.data)
    start = np.concatenate([[0.0], running])[share.indptr[:-1]]
    passed = np.bincount(
        rows, running - start[rows] <= point[rows], minlength=share.shape[0]
    ).astype(np.int64)
    some = sizes > 0
    picked = share.indptr[:-1][some] + np.minimum(passed, sizes - 1)[some]
    out = np.zeros(share.nnz)
    out[picked] = total[some]
    return out
