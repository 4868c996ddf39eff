"""``FrankWolfe``: a randomised rule, learned on validation data, for rows that come later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_k, as_labels, as_seed, as_width
from longtail.answers.topk import TopK
from longtail.decide.candidates import Candidates, as_candidates, as_examples
from longtail.decide.mixture import frank_wolfe
from longtail.decide.objective import Counts, make_objective
from longtail.decide.rule import DecisionRule, decide_linear, is_exact
from longtail.decide.sampling import madow_sample
from longtail.decide.utilities import Constants, precision_share
from longtail.exceptions import ModelFormatError

__all__ = ["FrankWolfe"]

Rule = TypeVar("Rule", bound="FrankWolfe")


class FrankWolfe(DecisionRule):
    """Learns a mixture of rules ``top_k(a * eta + b)`` that maximises a metric of the population.

    On validation data with true labels, a rule h has confusion counts C(h); mixing rules mixes
    counts. The best linear rule for the gradient G of the metric at the present counts has::

        a_j = G_tp - G_fp - G_fn + G_tn          b_j = G_fp - G_tn

    It joins the mixture with the share that improves the metric most (line search), and weights
    then move between the rules found so far until none can be exchanged with profit. For each later
    row one rule is drawn by its weight.

    Parameters
    ----------
    metric : str or callable
        "precision", ``"macro_..."`` as in ``BlockCoordinateAscent``, ``"micro_..."`` likewise, or a
        function of arrays (tp, fp, fn, tn), fractions of the rows: one value per label (their mean
        is maximised, slopes by finite differences), or, with ``gradient``, one number for all
        labels.
    k : int or None
        Labels per row; None names every label of positive gain (``budget`` is then "at_most").
    budget : str
        "exactly" k or "at_most" k, where only labels with a positive gain are named.
    gradient : callable or None
        Of ``metric``: (tp, fp, fn, tn) to four arrays.
    precision_weight : float
        w in the objective (1 - w) * metric + w * precision at k.
    init : str, TopK or pair of arrays
        The first rule: "top" (a = 1, b = 0), "prior" (a = 1 / prior: every label is named now and
        then), a pair of arrays (a, b), or a list of these: all are tried, the best result is kept.
    random_starts : int
        Further first rules, drawn at random; a metric that is not concave can have several local
        optima.
    max_iter : int
        Most rules in the mixture.
    tol : float
        Stop when an iteration improves the metric by less.
    corrections : int
        Most exchanges of weight between rules after each iteration.
    beta, epsilon : float
        Of F-beta; added to denominators.
    shrinkage : float
        s in [0, 1]: counts are those of (1 - s) * Y + s * eta instead of Y. A label without a
        positive in Y has no slope, and is never named afterwards; where validation rows do not hold
        every label, 0.1 repairs that.
    sampling : str
        "rule" draws one rule per row; "madow" draws a set with the same inclusion probabilities by
        systematic sampling; "heaviest" always uses the rule of largest weight.
    candidates_only : bool
        As in ``BlockCoordinateAscent``.
    random_state : int, Generator, RandomState or None
        Seed of ``fit`` and of every ``select``, which draws anew with None: for rows that come one
        by one, where the same seed draws the same rule each time.
    n_jobs : int or None
        Threads; results do not depend on it.

    After ``fit``: ``a_``, ``b_`` (rules, L), ``weights_`` (rules,) summing to 1, ``utility_``,
    ``utilities_`` (after each iteration), ``gap_``: for a concave metric and exact
    probabilities, no rule exceeds ``utility_`` by more.

    >>> eta = np.array([[0.9, 0.6], [0.4, 0.3]])
    >>> rule = FrankWolfe("macro_f1", k=1, random_state=0).fit(eta, eta)
    >>> round(rule.utility_, 6)
    0.549351

    Labels may be soft, as here, where the probabilities are the truth. Use data that the model was
    not fitted on, with enough positives of every label: ``utility_`` far above the metric on
    further rows is a sign of too few (see ``shrinkage``). Refuses fit data whose shapes differ, and
    ``select`` before ``fit``.

    E. Schultheis, W. Kotłowski, M. Wydmuch, R. Babbar, S. Borman and K. Dembczyński, "Consistent
    algorithms for multi-label classification with macro-at-k metrics", ICLR 2024, algorithm 1.
    """

    type_tag = "frank-wolfe"

    a_: np.ndarray
    b_: np.ndarray
    weights_: np.ndarray
    utility_: float
    utilities_: np.ndarray
    gap_: float

    def __init__(
        self,
        metric: str | Callable[..., Any] = "macro_f1",
        k: int | None = 5,
        *,
        budget: str = "exactly",
        gradient: Callable[..., Any] | None = None,
        precision_weight: float = 0.0,
        init: Any = ("top", "prior"),
        random_starts: int = 0,
        max_iter: int = 50,
        tol: float = 1e-7,
        corrections: int = 10,
        beta: float = 1.0,
        epsilon: float = 1e-9,
        shrinkage: float = 0.0,
        sampling: str = "rule",
        candidates_only: bool = False,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.metric = metric
        self.k = k
        self.budget = budget
        self.gradient = gradient
        self.precision_weight = precision_weight
        self.init = init
        self.random_starts = random_starts
        self.max_iter = max_iter
        self.tol = tol
        self.corrections = corrections
        self.beta = beta
        self.epsilon = epsilon
        self.shrinkage = shrinkage
        self.sampling = sampling
        self.candidates_only = candidates_only
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self: Rule, eta: Any, Y: Any, *, include: Any = None, exclude: Any = None) -> Rule:
        """Learn from probabilities ``eta`` (n, L) and the true labels ``Y`` of the same rows.

        Parameters
        ----------
        eta : TopK or matrix of shape (n, L)
            Probabilities of labels.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        include : list of labels, or mask of shape (L,), default=None
            Labels to choose from.
        exclude : list of labels, or mask of shape (L,), default=None
            Labels to leave out.
        """
        found, Y = as_examples(eta, Y, include=include, exclude=exclude)
        self._check()
        if self.shrinkage:
            mixed = (1 - self.shrinkage) * Y + self.shrinkage * found.to_csr()
            Y = as_labels(sp.csr_matrix(mixed, dtype=np.float32))
        n = found.n_rows
        p = np.bincount(Y.indices, weights=Y.data, minlength=Y.shape[1]) / n
        weight = precision_share(self.metric, self.precision_weight, self.k)
        constants = Constants(self.beta**2, self.epsilon, 1e-3 / n)
        objective = make_objective(self.metric, self.gradient, p, self.k, weight, constants)
        how, truth, threads = self._how(found), csr_args(Y), n_threads(self.n_jobs)
        budget = as_width(how["k"], found.n_labels), how["exactly"], self.candidates_only

        def measure(a: np.ndarray, b: np.ndarray) -> Counts:
            rule = [np.ascontiguousarray(x[None], dtype=np.float64) for x in (a, b)]
            t, q = core.count_linear(
                found.args, *rule, found.allowed, *budget, truth, threads, None
            )
            return Counts(t / n, q / n)

        results = [
            frank_wolfe(
                measure,
                objective,
                start,
                max_iter=as_k(self.max_iter, "max_iter"),
                tol=self.tol,
                corrections=self.corrections,
            )
            for start in self._starts(p)
        ]
        best = max(results, key=lambda mixture: mixture.utilities[-1])
        self.a_ = np.array([a for a, _ in best.rules])
        self.b_ = np.array([b for _, b in best.rules])
        self.weights_ = np.array(best.weights)
        self.utilities_ = np.array(best.utilities)
        self.utility_, self.gap_ = float(best.utilities[-1]), best.gap
        return self

    def _n_labels(self) -> int:
        self._check_fitted()
        return int(self.a_.shape[1])

    def _select(self, found: Candidates) -> TopK:
        self._check()
        if self.sampling == "madow":
            return self._draw_sets(found)
        if self.sampling == "heaviest":
            rule_of = np.full(found.n_rows, int(np.argmax(self.weights_)), np.int32)
        else:
            u = np.random.default_rng(as_seed(self.random_state)).random(found.n_rows)
            edges = np.cumsum(self.weights_)
            drawn = np.searchsorted(edges, u * edges[-1], side="right")
            rule_of = np.minimum(drawn, len(edges) - 1).astype(np.int32)
        ids, etas = decide_linear(
            found, self.a_, self.b_, rule_of=rule_of, by_probability=True, **self._how(found)
        )
        return TopK._trusted(ids, etas, found.n_labels)

    def marginals(self, eta: Any, *, include: Any = None, exclude: Any = None) -> sp.csr_matrix:
        """Return the probability (n, L) with which each label is named in each row; rows sum to
        k.

        Parameters
        ----------
        eta : TopK or matrix of shape (n, L)
            Probabilities of labels.
        include : list of labels, or mask of shape (L,), default=None
            Labels to choose from.
        exclude : list of labels, or mask of shape (L,), default=None
            Labels to leave out.
        """
        n_labels = self._n_labels()
        found = as_candidates(eta, include=include, exclude=exclude, n_labels=n_labels)
        total = sp.csr_matrix((found.n_rows, found.n_labels))
        for a, b, weight in zip(self.a_, self.b_, self.weights_, strict=True):
            ids, scores = decide_linear(found, a, b, **self._how(found))
            chosen = TopK._trusted(ids, scores, found.n_labels).to_csr(binary=True)
            total = total + chosen.astype(np.float64) * weight
        return sp.csr_matrix(total.astype(np.float32))

    def _draw_sets(self, found: Candidates) -> TopK:
        seed = as_seed(self.random_state)
        chosen = madow_sample(self.marginals(found), random_state=seed)
        counts = np.diff(chosen.indptr)
        if chosen.nnz:
            rows = np.repeat(np.arange(found.n_rows), counts)
            chosen.data = np.asarray(found.to_csr()[rows, chosen.indices]).ravel()
        return TopK.from_scores(chosen, max(self._how(found)["k"], counts.max(initial=0)))

    def _how(self, found: Candidates) -> dict[str, Any]:
        """Return the options of a decision by linear rules."""
        return {
            "k": max(1, found.longest) if self.k is None else as_k(self.k),
            "exactly": is_exact(self.budget) and self.k is not None,
            "candidates_only": self.candidates_only,
            "n_jobs": self.n_jobs,
        }

    def _check(self) -> None:
        is_exact(self.budget)
        precision_share(self.metric, self.precision_weight, self.k)
        if not 0 <= self.shrinkage <= 1:
            raise ValueError(f"shrinkage must lie in [0, 1], got {self.shrinkage!r}")
        if self.sampling not in ("rule", "madow", "heaviest"):
            raise ValueError(
                f'sampling must be "rule", "madow" or "heaviest", got {self.sampling!r}'
            )

    def _starts(self, p: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        pair = isinstance(self.init, tuple) and any(not isinstance(x, str) for x in self.init)
        several = isinstance(self.init, (list, tuple)) and not pair
        out = []
        for init in self.init if several else [self.init]:
            if isinstance(init, str) and init in ("top", "prior"):
                a = np.ones_like(p) if init == "top" else np.where(p > 0, 1 / np.fmax(p, 1e-300), 0)
                out.append((a, np.full_like(p, -0.5) if self.k is None else np.zeros_like(p)))
                continue
            if isinstance(init, str) or len(init) != 2:
                raise ValueError(f'init must be "top", "prior" or a pair (a, b), got {init!r}')
            a, b = (np.asarray(x, dtype=np.float64) for x in init)
            if a.shape != p.shape or b.shape != p.shape or not np.isfinite([a, b]).all():
                raise ValueError(f"init must be finite arrays of shape {p.shape}")
            out.append((a, b))
        rng = np.random.default_rng(as_seed(self.random_state))
        for _ in range(self.random_starts):
            out.append((rng.random(len(p)), rng.random(len(p)) - 0.5))
        return out

    def _get_state(self) -> persist.State:
        if not isinstance(self.metric, str):
            raise TypeError("a rule for a Python function cannot be saved: keep its arrays")
        state = super()._get_state()
        if not isinstance(self.init, str):
            state.params["init"] = [i for i in self.init if isinstance(i, str)] or "top"
        state.arrays.update(a=self.a_, b=self.b_, weights=self.weights_, utilities=self.utilities_)
        state.meta["gap"] = self.gap_
        return state

    def _set_state(self, state: persist.State) -> None:
        self.weights_ = state.array("weights", np.float64, (None,))
        self.a_ = state.array("a", np.float64, (len(self.weights_), None))
        self.b_ = state.array("b", np.float64, self.a_.shape)
        self.utilities_ = state.array("utilities", np.float64, (None,))
        if not len(self.weights_) or not len(self.utilities_):
            raise ModelFormatError("a mixture needs at least one rule")
        self.utility_, self.gap_ = float(self.utilities_[-1]), float(state.meta["gap"])
