"""``OnlineRule``: decides row by row while it keeps the running confusion counts."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from longtail import persist
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_labels, as_width, check_same_rows
from longtail.answers.topk import TopK
from longtail.decide.candidates import Candidates, as_candidates
from longtail.decide.rule import DecisionRule, by_probability, is_exact
from longtail.decide.utilities import check_name, native_name, precision_share
from longtail.exceptions import ModelFormatError

__all__ = ["OnlineRule"]


class OnlineRule(DecisionRule):
    """Names labels for rows as they arrive, so that a macro metric over all of them grows.

    It keeps, for every label, the expected true positives t, the number of times it was named q and
    the expected positives p of all rows so far, names the labels that raise the metric of these
    counts most, and adds the row to them. A decision is never revised; with all rows at hand,
    ``BlockCoordinateAscent`` reaches more. Safe to call from several threads.

    Parameters
    ----------
    metric : str
        A name as in ``BlockCoordinateAscent``, except "coverage".
    k : int
        Labels per row.
    budget : str
        "exactly" k (as far as there are candidates) or "at_most" k: only labels that gain.
    precision_weight : float
        w in the objective (1 - w) * metric + w * precision at k.
    half_life : float or None
        Rows after which a row counts half, for traffic that changes; None never forgets.
    n_labels : int or None
        Width of the label space; None takes it from the first call.
    beta, epsilon : float
        Of F-beta; added to the denominators.

    ``select`` decides rows in order and counts each; only candidates are named. State: ``t_``,
    ``q_``, ``p_`` (L,), ``n_rows_``; ``reset`` forgets it, ``save`` keeps it.

    >>> rule = OnlineRule("macro_f1", k=1)
    >>> [int(rule.select([row]).indices[0, 0]) for row in ([0.9, 0.8], [0.9, 0.8], [0.9, 0.8])]
    [0, 1, 0]
    """

    type_tag = "online-rule"
    _not_copied = ("_lock",)

    t_: np.ndarray
    q_: np.ndarray
    p_: np.ndarray
    n_rows_: float
    weight_: float

    def __init__(
        self,
        metric: str = "macro_f1",
        k: int = 5,
        *,
        budget: str = "exactly",
        precision_weight: float = 0.0,
        half_life: float | None = None,
        n_labels: int | None = None,
        beta: float = 1.0,
        epsilon: float = 0.0,
    ) -> None:
        self.metric = metric
        self.k = k
        self.budget = budget
        self.precision_weight = precision_weight
        self.half_life = half_life
        self.n_labels = n_labels
        self.beta = beta
        self.epsilon = epsilon
        self._lock = threading.Lock()

    def _n_labels(self) -> int | None:
        return len(self.t_) if hasattr(self, "t_") else self.n_labels

    def _select(self, found: Candidates) -> TopK:
        exactly, growth = is_exact(self.budget), self._growth()
        weight = precision_share(self.metric, self.precision_weight, self.k)
        check_name(self.metric)
        with self._lock:
            found = as_candidates(found, n_labels=self._n_labels())  # the first call sets it
            k = as_width(self.k, found.n_labels)
            if not hasattr(self, "t_"):
                self.reset(found.n_labels)
            block = max(1, int(200 / np.log2(growth))) if growth > 1 else max(1, found.n_rows)
            parts = []
            for start in range(0, max(found.n_rows, 1), block):
                indptr = found.indptr[start : start + block + 1]
                part = slice(int(indptr[0]), int(indptr[-1]))
                ids, etas, self.n_rows_ = core.decide_online(
                    (
                        np.ascontiguousarray(indptr - indptr[0]),
                        found.indices[part],
                        found.values[part],
                        found.n_labels,
                    ),
                    native_name(self.metric),
                    float(self.beta),
                    float(self.epsilon),
                    k,
                    exactly,
                    weight,
                    self.weight_,
                    growth,
                    self.t_,
                    self.q_,
                    self.p_,
                    self.n_rows_,
                )
                parts.append((ids, etas))
                self._fade(growth ** len(ids))
        ids, etas = (np.concatenate(each) for each in zip(*parts, strict=True))
        return by_probability(ids, etas, found.n_labels)

    def correct(self, eta: Any, chosen: TopK, Y: Any) -> None:
        """Replace what was expected of these rows by their true labels, once these are known.

        Parameters
        ----------
        eta : TopK or matrix of shape (n, L)
            The probabilities that were decided on.
        chosen : TopK
            What ``select`` returned.
        Y : matrix of shape (n, L)
            True labels, which are now known.
        """
        self._check_fitted()
        Y = as_labels(Y, n_labels=len(self.t_))
        found = as_candidates(eta, n_labels=len(self.t_))
        check_same_rows(found.n_rows, Y.shape[0], "eta")
        check_same_rows(len(chosen), Y.shape[0], "chosen")
        named, width = chosen.indices >= 0, len(self.t_)
        hits = core.match_gains(csr_args(Y), chosen.indices, n_threads(None)).astype(np.float64)
        surprise = (hits - chosen.scores)[named]
        with self._lock:
            # The latest weight stands for that of these rows: they are recent.
            scale = self.weight_ / self._growth()
            more = np.bincount(chosen.indices[named], weights=surprise, minlength=width)
            self.t_ = np.maximum(self.t_ + scale * more, 0)
            truth = np.bincount(Y.indices, weights=Y.data, minlength=width)
            self.p_ = np.maximum(self.p_ + scale * (truth - found.expected_positives()), 0)

    def reset(self, n_labels: int | None = None) -> None:
        """Forget all rows.

        Parameters
        ----------
        n_labels : int, default=None
            Number of labels; None keeps it.
        """
        n_labels = self._n_labels() if n_labels is None else n_labels
        if n_labels is None:
            raise ValueError("n_labels is not known yet")
        self.t_, self.q_, self.p_ = (np.zeros(n_labels) for _ in range(3))
        self.n_rows_, self.weight_ = 0.0, 1.0

    def _growth(self) -> float:
        if self.half_life is None:
            return 1.0
        if not (np.isfinite(self.half_life) and self.half_life >= 1):
            raise ValueError(f"half_life must be at least one row, got {self.half_life!r}")
        return float(2 ** (1 / self.half_life))

    def _fade(self, factor: float) -> None:
        """Newer rows weigh more; before the numbers grow too large all are scaled down."""
        self.weight_ *= factor
        if self.weight_ > 1e60:
            for counts in (self.t_, self.q_, self.p_):
                counts /= self.weight_
            self.n_rows_ /= self.weight_
            self.weight_ = 1.0

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "t_")

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.arrays.update(t=self.t_, q=self.q_, p=self.p_)
        state.meta.update(n_rows=self.n_rows_, weight=self.weight_)
        return state

    def _set_state(self, state: persist.State) -> None:
        self.t_ = np.array(state.array("t", np.float64, (None,)))
        self.q_ = np.array(state.array("q", np.float64, self.t_.shape))
        self.p_ = np.array(state.array("p", np.float64, self.t_.shape))
        self.n_rows_, self.weight_ = float(state.meta["n_rows"]), float(state.meta["weight"])
        if not (self.weight_ > 0 and self.n_rows_ >= 0):
            raise ModelFormatError("an online rule needs a positive weight")
