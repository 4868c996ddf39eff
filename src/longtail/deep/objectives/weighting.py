"""What the observed labels of a training weigh: complete, or corrected for missing ones.

==============================  ====================  ==================  =======================
correction                      a, as a positive      b, as a negative    of an absent label
==============================  ====================  ==================  =======================
None                            ``y``                 ``1 - y``           1
"surrogate" (and balanced)      ``w_j y``             ``1 - y``           1
"unbiased"                      ``y / p``             ``1 - y/p``         1
"normalized"                    ``T``                 ``1 - T``           1
"pal"                           ``w = y / p``         ``|w| - w``         ``|w|``
"pal-n"                         ``w = T``, bound      ``|w| - w``         ``|w|``
"pol"                           ``w = |T|`` of one    ``|w| - w``         ``|w|``
                                label, drawn anew
                                in every epoch
==============================  ====================  ==================  =======================

``longtail.losses`` has the losses, what they estimate, and which are safe to train with. A softmax
takes the last three; complete labels are "pal-n" with p = 1 to it. Weights of the surrogate are
scaled to mean 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.losses import normalized_weights, surrogate_weights
from longtail.losses.pick_labels import pick_one

__all__ = ["CORRECTIONS", "PICKS", "Weighted", "weighted"]

PICKS = ("pal", "pal-n", "pol")
_BALANCE = {"surrogate": None, "surrogate+balance": "after", "balance+surrogate": "before"}
CORRECTIONS = (*_BALANCE, "unbiased", "normalized", *PICKS)


@dataclass(frozen=True)
class Weighted:
    """``positive``: CSR (n, L), weights a; ``negative`` (nnz,): weights b, None for ``1 - a``;
    ``absent`` (n,): the weight of an absent label in each row, None for 1.
    """

    positive: sp.csr_matrix
    negative: np.ndarray | None = None
    absent: np.ndarray | None = None


def weighted(
    Y: sp.csr_matrix, correction: str | None, propensity: np.ndarray | None, seed: list[int]
) -> Weighted:
    """Return the weights of labels ``Y`` (n, L) observed with ``propensity`` (L,).

    ``seed``: of the labels that "pol" draws.
    """
    if correction is None or propensity is None:
        return Weighted(Y)
    if correction in _BALANCE:
        counts = np.bincount(Y.indices, Y.data, minlength=Y.shape[1])
        weight = surrogate_weights(propensity, counts, balance=_BALANCE[correction], mean_one=True)
        return Weighted(_like(Y, weight[Y.indices] * Y.data), negative=1 - Y.data)
    if correction in ("unbiased", "pal"):
        values = Y.data / propensity[Y.indices]
    else:
        shares = normalized_weights(Y, propensity)
        values = shares.data
        if correction == "pol":
            values = pick_one(shares, np.random.default_rng(seed))
    if correction not in PICKS:
        return Weighted(_like(Y, values))
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    total = np.bincount(rows, values, minlength=Y.shape[0])
    return Weighted(_like(Y, values), negative=total[rows] - values, absent=total)


def _like(Y: sp.csr_matrix, values: np.ndarray) -> sp.csr_matrix:
    return sp.csr_matrix((values.astype(np.float32), Y.indices, Y.indptr), shape=Y.shape)
