"""``Threshold``: how many labels to name, and when to name none."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._renamed import renamed
from longtail._validation import as_k, as_labels, check_same_rows
from longtail.answers.topk import TopK
from longtail.decide.candidates import Candidates, as_candidates
from longtail.decide.prefixes import Prefixes
from longtail.decide.rule import DecisionRule, decide_linear

__all__ = ["Threshold"]

Rule = TypeVar("Rule", bound="Threshold")


class Threshold(DecisionRule):
    """Names every label whose probability is above a threshold tuned on validation data.

    Thresholds are searched exactly: every cut between two scores of the validation data is
    evaluated. With ``per="label"`` each label has its own,

        F_j = (1 + beta^2) tp_j / (beta^2 p_j + q_j)      maximised for each j (macro), or
        F   = (1 + beta^2) sum tp / (beta^2 sum p + sum q) maximised over all together (micro);

    with ``per="global"`` one threshold serves all labels. A row in which nothing passes is not
    answered (its slots are empty): that is an abstention.

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
        Y = as_labels(Y)
        found = as_candidates(eta, n_labels=Y.shape[1])
        check_same_rows(found.n_rows, Y.shape[0], "eta")
        if not found.n_rows or not found.n_labels:
            raise ValueError(f"eta has the shape {found.n_rows, found.n_labels}: nothing to learn")
        positives = np.bincount(Y.indices, weights=Y.data, minlength=Y.shape[1])
        y = _true_values(found, Y)
        if not len(y):
            thresholds, everywhere = np.full(found.n_labels, np.inf), np.inf
        else:
            entries = Prefixes.of(found, y)
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

    @renamed(allow="include", deny="exclude")
    def select(self, eta: Any, *, include: Any = None, exclude: Any = None) -> TopK:
        """Return the labels above their thresholds, most probable first; a row without any is
        empty.

        As many slots as the longest answer needs, at least one.

        Parameters
        ----------
        eta : TopK or matrix of shape (n, L)
            Probabilities of labels.
        include : list of labels, mask or matrix, default=None
            Labels to choose from.
        exclude : list of labels, mask or matrix, default=None
            Labels to leave out.
        """
        self._check_fitted()
        self._check()
        n_labels = len(self.thresholds_)
        found = as_candidates(eta, include=include, exclude=exclude, n_labels=n_labels)
        k = max(1, found.longest) if self.k is None else as_k(self.k)
        ones, b = np.ones(n_labels), -self.thresholds_
        ids, etas = decide_linear(
            found, ones, b, k, exactly=False, by_probability=True, n_jobs=self.n_jobs
        )
        if self.at_least:
            few = min(self.at_least, k)
            short = (ids >= 0).sum(axis=1) < few
            nearest, near_etas = decide_linear(
                found, ones, b, few, exactly=True, candidates_only=True, by_probability=True,
                n_jobs=self.n_jobs,
            )  # fmt: skip
            ids[short], etas[short] = -1, -np.inf
            ids[short, :few], etas[short, :few] = nearest[short], near_etas[short]
        width = max(1, int((ids >= 0).sum(axis=1).max(initial=0)))
        if self.k is not None:
            width = k
        return TopK._trusted(
            np.ascontiguousarray(ids[:, :width]), np.ascontiguousarray(etas[:, :width]), n_labels
        )

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

    def _f(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        b2 = self.beta**2
        below = np.asarray(b2 * p + q, dtype=np.float64)
        return np.divide((1 + b2) * t, below, out=np.zeros(below.shape), where=below > 0)

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
        order = np.argsort(-e.score, kind="stable")
        score, y = e.score[order], e.y[order]
        if self.metric == "macro_f1" and self.target_precision is None:
            # Lowering the threshold past an entry moves its label from the counts before to those
            # after; the macro mean follows by the sum of these moves.
            p = positives[e.label]
            moves = self._f(e.t, e.q, p) - self._f(e.t - e.y, e.q - 1, p)
            value = np.cumsum(moves[order])
        else:
            t, q = np.cumsum(y), np.arange(1, len(y) + 1)
            value = self._f(t, q, np.full(len(y), positives.sum()))
            if self.target_precision is not None:
                value = np.where(t / q >= self.target_precision - 1e-12, q, -1.0)
        possible = np.append(score[1:] != score[:-1], True)
        value = np.where(possible, value, -np.inf)
        at = int(np.argmax(value))
        if value[at] <= 0:
            if self.target_precision is not None:
                warnings.warn(
                    f"no threshold reaches a precision of {self.target_precision:g} on this data: "
                    "the rule will never answer",
                    UserWarning,
                    stacklevel=3,
                )
            return float("inf")
        following = score[at + 1] if at + 1 < len(score) else 0.0
        return float(score[at] + following) / 2

    def _get_state(self) -> persist.State:
        state = super(DecisionRule, self)._get_state()
        state.arrays["thresholds"] = self.thresholds_
        for name in ("global_threshold", "utility", "labels_per_row", "answered"):
            state.meta[name] = getattr(self, f"{name}_")
        return state

    def _set_state(self, state: persist.State) -> None:
        self.thresholds_ = state.array("thresholds", np.float64, (None,))
        for name in ("global_threshold", "utility", "labels_per_row", "answered"):
            setattr(self, f"{name}_", float(state.meta[name]))


def _true_values(found: Candidates, Y: sp.csr_matrix) -> np.ndarray:
    """Return the value in ``Y`` of every stored entry."""
    if not len(found.indices):
        return np.zeros(0)
    keys = found.rows() * found.n_labels + found.indices
    known = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)) * found.n_labels + Y.indices
    at = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
    if not len(known):
        return np.zeros(len(keys))
    return np.where(known[at] == keys, Y.data[at], 0.0).astype(np.float64)
