"""The unbiased estimate of any loss of a label set, from observed labels.

With independent masks there is exactly one function of the observed labels y whose mean over masks
is l(s, Y) for every Y:

    ``sum_{y' <= y} l(s, y') prod_{kept} 1/p_j prod_{dropped} (1 - 1/p_j)``

over the 2^|y| sub-sets y' of the observed labels. (In print as ``prod (1 - p_j)`` for dropped
labels; with that sign it is biased.) The terms alternate in sign and their sum of absolute values
is ``prod (2/p_j - 1)``: where rows have many labels or propensities are low, the estimate is right
on average and useless for a single row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_k, as_seed
from longtail.losses.observed import LossValue, check_inputs

__all__ = ["Unbiased", "sub_labels"]

_AT_ONCE = 1 << 22  # scores in one call of the loss


@dataclass(frozen=True)
class Unbiased:
    """Any ``loss(scores, Y) -> (value, gradient)``, estimated without bias under missing labels.

    Parameters
    ----------
    loss : callable
        Of complete labels, one of this room or your own; called with many label sets at a time.
    max_exact, n_draws : int
        Rows with at most this many observed labels sum over all 2^m sub-sets; the others draw
        ``n_draws`` of them at random, which is unbiased too.
    draw : str
        "weight" keeps a label with probability 1/(2 - p), so that all drawn terms have the same
        size; "half" with probability 1/2. No term is clipped, which would bias the sum.
    random_state : int, Generator, RandomState or None
        Of the draws; an int draws the same in every call.

    >>> def recall_of_first(scores, Y):
    ...     sizes = np.maximum(Y.sum(axis=1).A1, 1)
    ...     return Y[:, [0]].toarray()[:, 0] / sizes, np.zeros(scores.shape)
    >>> loss = Unbiased(recall_of_first)
    >>> loss(np.zeros((4, 2)), [[], [1], [0], [0, 1]], [0.5, 0.5]).value
    array([0., 0., 2., 0.])

    Schultheis and Babbar 2021, with the sign of their equation corrected.
    """

    loss: Callable[..., Any]
    max_exact: int = 10
    n_draws: int = 32
    draw: str = "weight"
    random_state: Any = 0

    def __call__(self, scores: Any, Y: Any, propensity: Any = None) -> LossValue:
        if self.draw not in ("weight", "half"):
            raise ValueError(f"draw must be 'weight' or 'half', got {self.draw!r}")
        if isinstance(self.max_exact, bool) or not 0 <= self.max_exact <= 24:
            raise ValueError(f"max_exact must lie between 0 and 24, got {self.max_exact}")
        n_draws, seed = as_k(self.n_draws, "n_draws"), as_seed(self.random_state)
        observed = check_inputs(scores, Y, propensity)
        s, labels = observed.scores, observed.labels
        value, gradient = np.zeros(len(s)), np.zeros_like(s)
        step = max(1, _AT_ONCE // max(1, s.shape[1]))
        for row in range(len(s)):
            own = slice(*labels.indptr[row : row + 2])
            p, rng = observed.propensity[labels.indices[own]], None
            if (p < 1).sum() > self.max_exact:  # labels that are always observed never drop
                rng = np.random.default_rng([seed, row])
            kept, weights = sub_labels(p, rng, n_draws=n_draws, draw=self.draw)
            subsets = _subsets(labels[row], kept)
            for begin in range(0, len(weights), step):
                part = slice(begin, begin + step)
                tiled = np.broadcast_to(s[row], (len(weights[part]), s.shape[1]))
                its_value, its_gradient = self.loss(tiled, subsets[part])
                value[row] += weights[part] @ its_value
                gradient[row] += weights[part] @ its_gradient
        return LossValue(value, gradient)


def _subsets(labels: sp.csr_matrix, kept: np.ndarray) -> sp.csr_matrix:
    """Return sub-sets of the labels of one row (1, L), as CSR (t, L); ``kept`` is (t, m)."""
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    values, ids = (np.broadcast_to(x, kept.shape)[kept] for x in (labels.data, labels.indices))
    return sp.csr_matrix((values, ids, indptr), shape=(len(kept), labels.shape[1]))


def sub_labels(
    p: np.ndarray, rng: np.random.Generator | None, *, n_draws: int = 32, draw: str = "weight"
) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the observed labels with propensities ``p`` (m,) each term keeps, bool (t,
    m), and its weight (t,); without ``rng`` all terms that are not 0, the full set first.

    >>> sub_labels(np.array([0.5, 1.0]), None)
    (array([[ True,  True],
           [False,  True]]), array([ 2., -1.]))
    """
    keep, drop = 1.0 / p, 1.0 - 1.0 / p
    if rng is None:
        doubtful = np.flatnonzero(p < 1)
        kept = np.ones((1 << len(doubtful), len(p)), dtype=bool)
        which = np.arange(len(kept))[:, None] >> np.arange(len(doubtful))
        kept[:, doubtful] = (which & 1) == 0
        return kept, np.prod(np.where(kept, keep, drop), axis=1)
    chance = 1.0 / (2.0 - p) if draw == "weight" else np.full(len(p), 0.5)
    kept = rng.random((n_draws, len(p))) < chance
    terms = np.where(kept, keep / chance, drop / np.maximum(1.0 - chance, 1e-300))
    return kept, np.prod(terms, axis=1) / n_draws
