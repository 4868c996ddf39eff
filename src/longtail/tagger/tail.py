"""Leaning an answer towards rare labels.

With probabilities eta_j, propensity-scored precision is highest for the k labels of largest
eta_j / p_j; plain precision for those of largest eta_j. Between the two lies

    eta_j * (1 / p_j) ** tail,        tail from 0 (plain) to 1 (rare labels count by 1/p_j)

with the propensities of ``JainPropensity`` from the training counts. One number, cheap enough for
a slider. Scores that are margins z and not probabilities stand in as exp(-max(0, 1 - z)^3), as
``XRLinear`` scores its labels: a rank-preserving stand-in, no probability.
"""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np

from longtail.data.topk import TopK
from longtail.propensity import JainPropensity
from longtail.propensity.base import PropensityWarning

__all__ = ["check_tail", "inverse_propensity", "lean"]


def check_tail(tail: Any) -> float:
    """A number from 0 to 1."""
    if isinstance(tail, bool) or not isinstance(tail, numbers.Real):
        raise TypeError(f"tail must be a number from 0 to 1, got {tail!r}")
    number = float(tail)
    if not math.isfinite(number) or not 0 <= number <= 1:
        raise ValueError(f"tail must lie between 0 and 1, got {tail!r}")
    return number


def inverse_propensity(counts: np.ndarray, n_rows: int) -> np.ndarray:
    """1 / p_j of each label (L,), from its training count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PropensityWarning)  # one or two rows: all weights are 1
        return np.asarray(JainPropensity().fit_counts(counts, max(n_rows, 1)).inverse_)


def lean(top: TopK, inverse: np.ndarray, tail: float, k: int) -> tuple[TopK, np.ndarray]:
    """The k best of each row by the formula above, and the scores they came with (n, k)."""
    answered = top.indices >= 0
    scores = np.where(answered, top.scores, 0.0).astype(np.float64)
    if scores.min(initial=0.0) < 0 or scores.max(initial=0.0) > 1:
        scores = np.exp(-(np.maximum(0.0, 1.0 - np.maximum(scores, -8.0)) ** 3))
    weights = np.where(answered, inverse[np.where(answered, top.indices, 0)], 1.0) ** tail
    values = np.where(answered, scores * weights, -np.inf)
    # Best first; ties to the smaller label id; padding last.
    ids = np.where(answered, top.indices, np.iinfo(np.int32).max)
    order = np.lexsort((ids, -values), axis=-1)[:, :k]
    pick = [np.take_along_axis(a, order, axis=1) for a in (top.indices, values, top.scores)]
    return TopK._trusted(pick[0], pick[1].astype(np.float32), top.n_labels), pick[2]
