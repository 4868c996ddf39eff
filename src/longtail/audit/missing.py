"""Which absent labels are probably missing: Bayes' rule on out-of-fold probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._native import core, csr_args, n_threads
from longtail.answers.topk import TopK
from longtail.calibrate.choice import choose

__all__ = ["Pairs", "Suspect", "examined_pairs", "missing_probability"]

_LEAST_HITS = 50  # for a curve of its own


@dataclass(frozen=True)
class Suspect:
    """A label that is absent from a row and probably should not be.

    ``probability`` that it is relevant, given that it is absent; ``proba`` that it would be
    observed, according to the model; its ``propensity``.
    """

    row: int
    label: int
    name: str | None
    probability: float
    proba: float
    propensity: float


@dataclass(frozen=True)
class Pairs:
    """Examined pairs, (m,) each: ``row``, ``label``, the probability ``proba`` that the label is
    observed in the row, and whether it is (``hit``, graded where labels are).
    """

    row: np.ndarray
    label: np.ndarray
    proba: np.ndarray
    hit: np.ndarray

    def __len__(self) -> int:
        return len(self.row)

    @property
    def absent(self) -> np.ndarray:
        """Which pairs were not observed (m,)."""
        return np.asarray(self.hit == 0)


def missing_probability(proba: Any, propensity: Any) -> np.ndarray:
    """Return the probability that a label is relevant to a row from which it is absent.

    With q = P(observed | x) and p = P(observed | relevant), the label is relevant with probability
    q / p, and relevant but absent with probability q / p - q, out of 1 - q::

        P(relevant | absent, x) = (1 / p - 1) q / (1 - q)

    q above p contradicts the propensity (a label cannot be observed more often than it is observed
    where it is relevant); the result is then 1.

    Parameters
    ----------
    proba : array
        Probability that a label is observed.
    propensity : array
        Probability that a true label is observed.

    >>> missing_probability([0.4, 0.4, 0.8], [0.5, 1.0, 0.5]).round(4)
    array([0.6667, 0.    , 1.    ])
    """
    q, p = np.asarray(proba, np.float64), np.asarray(propensity, np.float64)
    if not ((q >= 0) & (q <= 1)).all() or not ((p > 0) & (p <= 1)).all():
        raise ValueError("probabilities lie in [0, 1] and propensities in (0, 1]")
    odds = np.divide(q, 1 - q, out=np.full(q.shape, np.inf), where=q < 1)
    lost = np.broadcast_to(1 / p - 1, np.broadcast(q, p).shape)
    out = np.multiply(lost, odds, out=np.zeros(lost.shape), where=lost > 0)
    return np.asarray(np.minimum(out, 1.0))


def examined_pairs(top: TopK, Y: Any, bin_of_label: np.ndarray, random_state: int) -> Pairs:
    """Return the answered pairs of out-of-fold answers ``top``, with calibrated probabilities.

    Whatever the scores mean, a rising curve is fitted to how often a label of that score was
    observed, by the method of least held-out log-loss (``longtail.calibrate.choose``): one curve
    for each group of ``bin_of_label`` (L,), since the same score can mean less for a rare label.
    A group with fewer than 50 hits takes the curve of all pairs; the others share its method.
    """
    hits = core.match_gains(csr_args(Y), top.indices, n_threads(None))
    answered = top.indices >= 0
    rows = np.broadcast_to(np.arange(len(top))[:, None], answered.shape)[answered]
    hits, scores = np.asarray(hits[answered], np.float64), top.scores[answered]
    if not len(rows):
        raise ValueError("the model answered nothing: there is no pair to examine")
    labels = top.indices[answered].astype(np.int64)
    chosen = choose(scores, hits, rows, random_state=random_state).calibrator
    found = chosen.transform(scores)
    group = bin_of_label[labels]
    for b in np.unique(group):
        own = group == b
        if hits[own].sum() >= _LEAST_HITS:
            found[own] = type(chosen).fit(scores[own], hits[own]).transform(scores[own])
    return Pairs(rows, labels, np.clip(found, 0, 1), hits)
