"""Leaning an answer towards rare labels.

With probabilities eta_j, propensity-scored precision is highest for the k labels of largest
eta_j / p_j; plain precision for those of largest eta_j. Between the two lies

    eta_j * (1 / p_j) ** tail,        tail from 0 (plain) to 1 (rare labels count by 1/p_j)

with the propensities of ``JainPropensity`` from the training counts: ``WeightedTopK("psp")`` of
``longtail.decide`` with p_j ** tail in place of p_j. One number, cheap enough for a slider. Scores
that are margins z and not probabilities stand in as exp(-max(0, 1 - z)^3), as ``XRLinear`` scores
its labels: a rank-preserving stand-in, no probability.
"""

from __future__ import annotations

import warnings

import numpy as np

from longtail.answers.topk import TopK
from longtail.decide import WeightedTopK
from longtail.propensity import JainPropensity
from longtail.propensity.base import PropensityWarning

__all__ = ["inverse_propensity", "lean", "scored"]


def inverse_propensity(counts: np.ndarray, n_rows: int) -> np.ndarray:
    """Return 1 / p_j of each label (L,), from its training count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PropensityWarning)  # one or two rows: all weights are 1
        return np.asarray(JainPropensity().fit_counts(counts, max(n_rows, 1)).inverse_)


def lean(top: TopK, inverse: np.ndarray, tail: float, k: int) -> TopK:
    """Return the k best of each row by the formula above, in that order; scores stay those of
    ``top``.
    """
    answered = top.indices >= 0
    scores = np.where(answered, top.scores, 0.0).astype(np.float64)
    # Row by row, so that an answer does not depend on what else is asked in the same call.
    margins = ((scores < 0) | (scores > 1)).any(axis=1)
    if margins.any():
        z = np.maximum(scores[margins], -8.0)
        scores[margins] = np.exp(-(np.maximum(0.0, 1.0 - z) ** 3))
    eta = np.where(answered, scores, -np.inf).astype(np.float32)
    order = np.argsort(-eta, axis=1, kind="stable")  # a TopK descends
    found = TopK._trusted(
        np.ascontiguousarray(np.take_along_axis(top.indices, order, axis=1)),
        np.ascontiguousarray(np.take_along_axis(eta, order, axis=1)),
        top.n_labels,
    )
    rule = WeightedTopK("psp", k, propensity=1.0 / inverse**tail, candidates_only=True)
    return scored(rule.select(found), top)


def scored(chosen: TopK, top: TopK) -> TopK:
    """Return what was chosen, in its order, with the scores that ``top`` has for it; 0 where it has
    none.

    Rules may order by another number than the probability, which is what is shown.
    """
    width = max(int(top.indices.max(initial=-1)), int(chosen.indices.max(initial=-1))) + 1
    rows = np.arange(len(top), dtype=np.int64)[:, None] * width
    answered = top.indices >= 0
    keys = (rows + top.indices)[answered]
    order = np.argsort(keys)
    keys, values = keys[order], top.scores[answered][order]
    wanted = rows + chosen.indices
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    scores = np.zeros(chosen.indices.shape, np.float32)
    if len(keys):
        scores = np.where(keys[at] == wanted, values[at], np.float32(0))
    scores[chosen.indices < 0] = -np.inf
    return TopK._trusted(chosen.indices, scores, top.n_labels)
