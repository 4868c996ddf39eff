"""``TopKRule`` and ``WeightedTopK``: rules that decide each row by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail import persist
from longtail._validation import as_k
from longtail.answers.topk import TopK
from longtail.decide.candidates import Candidates, as_candidates
from longtail.decide.rule import DecisionRule, decide_linear, is_exact
from longtail.losses.weights import propensity_values
from longtail.metrics.propensity_scored import inverse_propensities

__all__ = ["TopKRule", "WeightedTopK"]

_WEIGHTINGS = ("psp", "macro_recall", "macro_balanced_accuracy", "power_law", "log")


class TopKRule(DecisionRule):
    """The k most probable labels of each row: the best answer for precision, recall and nDCG at k.

    With ``min_probability`` less probable ones are left out; a row with fewer candidates than k is
    padded. Scores are the probabilities.

    Parameters
    ----------
    k : int, default=5
        Answers per row.
    min_probability : float, default=0.0
        Answers below are left out.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.

    >>> TopKRule(k=2).select([[0.1, 0.7, 0.4]]).indices
    array([[1, 2]], dtype=int32)
    """

    type_tag = "top-k-rule"

    def __init__(
        self, k: int = 5, *, min_probability: float = 0.0, n_jobs: int | None = None
    ) -> None:
        self.k = k
        self.min_probability = min_probability
        self.n_jobs = n_jobs

    def _select(self, found: Candidates) -> TopK:
        k, low = as_k(self.k), self.min_probability
        if not 0 <= low <= 1:
            raise ValueError(f"min_probability must lie in [0, 1], got {low!r}")
        ids, scores = decide_linear(
            found, None, None, k, exactly=True, candidates_only=True, n_jobs=self.n_jobs
        )
        if low > 0:
            drop = scores < np.float32(low)  # at the end of a row: scores descend
            ids[drop], scores[drop] = -1, -np.inf
        return TopK._trusted(ids, scores, found.n_labels)


class WeightedTopK(DecisionRule):
    """The k labels of largest ``a_j * eta_ij + b_j``: optimal for metrics linear in t and q.

    ======================= ================================================== ==================
    weighting               gain of naming label j in row i                    optimal for
    ======================= ================================================== ==================
    psp                     eta_ij / propensity_j                              propensity-scored
                                                                               precision
    macro_recall            eta_ij / prior_j                                   macro-recall
    macro_balanced_accuracy eta_ij / prior_j - (1 - eta_ij) / (1 - prior_j)    the same
    power_law               eta_ij * prior_j ** -beta                          (heuristic)
    log                     eta_ij * -log(prior_j)                             (heuristic)
    ======================= ================================================== ==================

    Parameters
    ----------
    weighting : str
        One of the table.
    k : int
        Labels per row.
    budget : str
        "exactly" k, or "at_most" k: then only labels with a positive gain are named.
    propensity : propensity model or array of shape (L,)
        For "psp", an object with ``inverse_`` or an array (L,) of propensities.
    prior : array of shape (L,) or None
        Share of rows that have each label (L,), for instance ``Y_train.mean(axis=0)``; None takes
        the mean of ``eta`` itself.
    beta : float
        Exponent of "power_law"; 1/4, 1/2 and 3/4 are usual.
    candidates_only : bool
        As in ``BlockCoordinateAscent``.
    n_jobs : int or None
        Threads; results do not depend on it.

    Equal gains go to the more probable label, then to the smaller id: the answer is as precise as
    the weighting allows. (Everywhere else in the library ties go to the smaller id at once.)
    A label whose prior is 0 gains nothing from being right (and 1 - prior = 0 loses nothing).
    Scores are the gains, best first. Refuses priors and propensities outside [0, 1] and of another
    length.

    >>> eta = [[0.9, 0.8, 0.1], [0.8, 0.7, 0.2], [0.7, 0.2, 0.3]]
    >>> WeightedTopK("macro_recall", k=1).select(eta).indices.ravel()
    array([1, 1, 2], dtype=int32)

    Schultheis et al., NeurIPS 2023, section 5 (closed forms) and the weightings compared there.
    """

    type_tag = "weighted-top-k"

    def __init__(
        self,
        weighting: str = "macro_recall",
        k: int = 5,
        *,
        budget: str = "exactly",
        propensity: Any = None,
        prior: Any = None,
        beta: float = 0.5,
        candidates_only: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.weighting = weighting
        self.k = k
        self.budget = budget
        self.propensity = propensity
        self.prior = prior
        self.beta = beta
        self.candidates_only = candidates_only
        self.n_jobs = n_jobs

    def _select(self, found: Candidates) -> TopK:
        k, exactly = as_k(self.k), is_exact(self.budget)
        a, b = self.weights(found)
        ids, scores = decide_linear(
            found,
            a,
            b,
            k,
            exactly=exactly,
            candidates_only=self.candidates_only,
            n_jobs=self.n_jobs,
        )
        return TopK._trusted(ids, scores, found.n_labels)

    def weights(self, eta: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors a and b (L,) of the gain, for these probabilities.

        Parameters
        ----------
        eta : TopK or matrix of shape (n, L)
            Probabilities of labels.
        """
        found = as_candidates(eta)
        zeros = np.zeros(found.n_labels)
        if self.weighting == "psp":
            if self.propensity is None:
                raise ValueError('weighting="psp" needs propensity=, for instance a JainPropensity')
            return inverse_propensities(self.propensity, found.n_labels), zeros
        if self.weighting not in _WEIGHTINGS:
            raise ValueError(
                f"unknown weighting {self.weighting!r}: use one of {', '.join(_WEIGHTINGS)}"
            )
        prior = self._prior(found)
        positive = np.where(prior > 0, prior, 1.0)
        if self.weighting == "power_law":
            if not np.isfinite(self.beta):
                raise ValueError(f"beta must be a number, got {self.beta!r}")
            return np.where(prior > 0, positive**-self.beta, 0.0), zeros
        if self.weighting == "log":
            return -np.log(positive), zeros
        inverse = np.where(prior > 0, 1 / positive, 0.0)
        if self.weighting == "macro_recall":
            return inverse, zeros
        inverse_rest = np.where(prior < 1, 1 / np.where(prior < 1, 1 - prior, 1.0), 0.0)
        return inverse + inverse_rest, -inverse_rest

    def _prior(self, found: Candidates) -> np.ndarray:
        if self.prior is None:
            return np.asarray(np.minimum(found.expected_positives() / max(1, found.n_rows), 1.0))
        prior = np.asarray(self.prior, dtype=np.float64).reshape(-1)
        if len(prior) != found.n_labels:
            raise ValueError(f"prior has {len(prior)} labels, eta has {found.n_labels}")
        if not ((prior >= 0) & (prior <= 1)).all():
            raise ValueError("priors must be shares of rows in [0, 1]: divide counts by the rows")
        return prior

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        propensity, prior = state.params.pop("propensity"), state.params.pop("prior")
        if propensity is not None:
            state.arrays["propensity"] = propensity_values(propensity).reshape(-1)
        if prior is not None:
            state.arrays["prior"] = np.asarray(prior, np.float64).reshape(-1)
        return state

    def _set_state(self, state: persist.State) -> None:
        for name in ("propensity", "prior"):
            if name in state.arrays:
                setattr(self, name, state.array(name, np.float64, (None,)))
