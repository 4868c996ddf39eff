"""``Threshold``: how many labels to name, and when to name none."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import numpy as np

from longtail import persist
from longtail._validation import as_k
from longtail.answers.topk import TopK
from longtail.decide.candidates import Candidates, as_examples
from longtail.decide.prefixes import Prefixes
from longtail.decide.rule import DecisionRule, decide_linear
from longtail.decide.utilities import MACRO, Constants

__all__ = ["Threshold"]

Rule = TypeVar("Rule", bound="Threshold")


class Threshold(DecisionRule):
    """Names every label whose probability is above a threshold tuned on validation data.

    Thresholds are searched exactly: every cut between two scores of the validation data is
    evaluated. With ``per="label"`` each label has its own,

        F_j = (1 + beta^2) tp_j / (beta^2 p_j + q_j)      maximised for each j (macro), or
        F   = (1 + beta^2) sum tp / (beta^2 sum p + sum q) maximised over all together (micro);

    with ``per="global"`` one threshold serves all labels. A row in which nothing passes is not
    answered (its slots are empty): that is an abstention. Without ``k``, answers have as many slots
    as the longest needs.

    Parameters
    ----------
    metric : str
        "macro_f1" or "micro_f1" (with ``beta``, F-beta).
    per : str
        "label" or "global".
    target_precision : float or None
        Instead of ``metric``: the one threshold with the largest recall at which the labels named
        in the validation data are right at least this often. The way to abstain.
    k : int or None
        Name at most k labels, those farthest above their thresholds; None sets no limit.
    at_least : int
        Name at least so many labels, those nearest to their thresholds.
    min_positives : int
        A label with fewer validation positives uses the global threshold: its own would be tuned on
        next to nothing.
    beta : float
        Of F-beta.
    n_jobs : int or None
        Threads; results do not depend on it.

    After ``fit``: ``thresholds_`` (L,), infinite for a label never worth naming;
    ``global_threshold_``; ``utility_`` on the validation data, before ``k`` and ``at_least``;
    ``labels_per_row_`` and ``answered_``, the mean number of labels named there and the share of
    rows with any.

    >>> eta, Y = np.array([[0.9, 0.2], [0.6, 0.3], [0.4, 0.1]]), [[0], [0, 1], []]
    >>> rule = Threshold("macro_f1").fit(eta, Y)
    >>> rule.thresholds_.round(3), rule.utility_
    (array([0.5 , 0.25]), 1.0)
    >>> rule.select(eta).to_csr(binary=True).toarray()
    array([[1., 0.],
           [1., 1.],
           [0., 0.]], dtype=float32)

    The S-cut of Yang (SIGIR 2001), with her fallback for rare labels; Dinkelbach's method for
    micro-F. Where exactly k labels must be named, use ``BlockCoordinateAscent`` or ``FrankWolfe``.
    """

    type_tag = "threshold-rule"

    thresholds_: np.ndarray
    global_threshold_: float
    utility_: float
    labels_per_row_: float
    answered_: float

    def __init__(
        self,
        metric: str = "macro_f1",
        *,
        per: str = "label",
        target_precision: float | None = None,
        k: int | None = None,
        at_least: int = 0,
        min_positives: int = 1,
        beta: float = 1.0,
        n_jobs: int | None = None,
    ) -> None:
        self.metric = metric
        self.per = per
        self.target_precision = target_precision
        self.k = k
        self.at_least = at_least
        self.min_positives = min_positives
        self.beta = beta
        self.n_jobs = n_jobs

    def fit(self: Rule, eta: Any, Y: Any) -> Rule:
        """Tune on probabilities ``eta`` (n, L) and the true labels ``Y`` of the same rows.

        Parameters
        ----------
        eta : TopK or matrix of shape (n, L)
            Probabilities of labels.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        """
        self._check()
        found, Y = as_examples(eta, Y)
        positives = np.bincount(Y.indices, weights=Y.data, minlength=Y.shape[1])
        thresholds, everywhere, y = np.full(found.n_labels, np.inf), np.inf, np.zeros(0)
        if len(found.values):
            y = np.asarray(Y[found.rows(), found.indices], np.float64).ravel()
            entries = Prefixes.of(found.indices, found.values, y)
            everywhere = self._one_for_all(entries, positives)
            thresholds = np.full(found.n_labels, everywhere)
            if self.per == "label" and self.target_precision is None:
                own = self._one_each(entries, positives)
                enough = positives >= max(self.min_positives, 1e-12)
                thresholds = np.where(enough, own, everywhere)
        named = found.values > thresholds[found.indices]
        q = np.bincount(found.indices[named], minlength=found.n_labels)
        t = np.bincount(found.indices[named], weights=y[named], minlength=found.n_labels)
        per_row = np.bincount(found.rows()[named], minlength=found.n_rows)
        self.utility_ = self._utility(t, q, positives)
        self.labels_per_row_ = float(per_row.mean())
        self.answered_ = float((per_row > 0).mean())
        self.global_threshold_ = float(everywhere)
        self.thresholds_ = thresholds
        return self

    def _n_labels(self) -> int:
        self._check_fitted()
        return len(self.thresholds_)

    def _select(self, found: Candidates) -> TopK:
        self._check()
        k = max(1, found.longest) if self.k is None else as_k(self.k)
        b = -self.thresholds_
        how: dict[str, Any] = {"by_probability": True, "n_jobs": self.n_jobs}
        ids, etas = decide_linear(found, None, b, k, exactly=False, **how)
        if self.at_least:
            few = min(self.at_least, k)
            short = (ids >= 0).sum(axis=1) < few
            nearest, near_etas = decide_linear(
                found, None, b, few, exactly=True, candidates_only=True, **how
            )
            ids[short], etas[short] = -1, -np.inf
            ids[short, :few], etas[short, :few] = nearest[short], near_etas[short]
        longest = int((ids >= 0).sum(axis=1).max(initial=0))
        top = TopK._trusted(ids, etas, found.n_labels)
        return top if self.k is not None else top.head(max(1, longest))

    def _check(self) -> None:
        if self.metric not in ("macro_f1", "micro_f1"):
            raise ValueError(f'metric must be "macro_f1" or "micro_f1", got {self.metric!r}')
        if self.per not in ("label", "global"):
            raise ValueError(f'per must be "label" or "global", got {self.per!r}')
        if self.target_precision is not None and not 0 < self.target_precision <= 1:
            raise ValueError(f"target_precision must lie in (0, 1], got {self.target_precision!r}")
        if self.at_least:
            as_k(self.at_least, "at_least")
        if not (np.isfinite(self.beta) and self.beta > 0):
            raise ValueError(f"beta must be positive, got {self.beta!r}")

    def _f(self, t: Any, q: Any, p: Any) -> np.ndarray:
        return MACRO["macro_f_beta"].value(t, q, p, Constants(self.beta**2))

    def _utility(self, t: np.ndarray, q: np.ndarray, positives: np.ndarray) -> float:
        if self.target_precision is not None:
            return float(t.sum() / q.sum()) if q.sum() else 0.0
        if self.metric == "macro_f1":
            return float(self._f(t, q, positives).mean())
        return float(self._f(t.sum(), q.sum(), positives.sum()))

    def _one_each(self, e: Prefixes, positives: np.ndarray) -> np.ndarray:
        """Return the best threshold of every label."""
        out = np.full(len(positives), np.inf)
        if self.metric == "macro_f1":
            position, best = e.best_cut(self._f(e.t, e.q, positives[e.label]))
            worth = best > 0
        else:  # Dinkelbach: F is reached when max over cuts of (1 + b2) t - F (q + b2 p) is 0
            b2, f = self.beta**2, 0.0
            for _ in range(100):
                position, best = e.best_cut((1 + b2) * e.t - f * e.q)
                worth = best > 0
                t, q = e.t[position[worth]].sum(), e.q[position[worth]].sum()
                better = float(self._f(t, q, positives.sum()))
                if better <= f + 1e-15:
                    break
                f = better
        labels = e.label[e.first]
        out[labels[worth]] = e.below(position[worth])
        return out

    def _one_for_all(self, e: Prefixes, positives: np.ndarray) -> float:
        """Return the best threshold that all labels share."""
        pooled = Prefixes.of(None, e.score, e.y)
        if self.metric == "macro_f1" and self.target_precision is None:
            # Lowering the threshold past an entry moves its label from the counts before to those
            # after; the macro mean follows by the sum of these moves.
            p = positives[e.label]
            moves = self._f(e.t, e.q, p) - self._f(e.t - e.y, e.q - 1, p)
            value = np.cumsum(moves[pooled.order])
        elif self.target_precision is None:
            value = self._f(pooled.t, pooled.q, positives.sum())
        else:
            enough = pooled.t / pooled.q >= self.target_precision - 1e-12
            value = np.where(enough, pooled.q, -1.0)
        position, best = pooled.best_cut(value)
        if best[0] > 0:
            return float(pooled.below(position)[0])
        if self.target_precision is not None:
            warnings.warn(
                f"no threshold reaches a precision of {self.target_precision:g} on this data: "
                "the rule will never answer",
                UserWarning,
                stacklevel=3,
            )
        return float("inf")

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.arrays["thresholds"] = self.thresholds_
        for name in ("global_threshold", "utility", "labels_per_row", "answered"):
            state.meta[name] = getattr(self, f"{name}_")
        return state

    def _set_state(self, state: persist.State) -> None:
        self.thresholds_ = state.array("thresholds", np.float64, (None,))
        for name in ("global_threshold", "utility", "labels_per_row", "answered"):
            setattr(self, f"{name}_", float(state.meta[name]))
