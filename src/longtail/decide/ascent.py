"""``BlockCoordinateAscent``: the labels of a given test set that maximise an expected metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from longtail._native import core, n_threads
from longtail._validation import as_k, as_seed, as_width
from longtail.answers.topk import TopK
from longtail.decide.bound import upper_bound
from longtail.decide.candidates import Candidates
from longtail.decide.rule import DecisionRule, by_probability, decide_linear, is_exact
from longtail.decide.utilities import (
    Constants,
    check_name,
    native_name,
    per_label,
    precision_share,
)

__all__ = ["BlockCoordinateAscent", "ascend"]

_MOST_STARTS = 1000


class BlockCoordinateAscent(DecisionRule):
    """Names k labels per row so that a label-wise metric of the whole set is as large as expected.

    With probabilities eta (n, L), a label named by the rows in S_j has expected counts::

        t_j = sum over S_j of eta_ij / n    q_j = |S_j| / n    p_j = sum over rows of eta_ij / n

    and the objective is the mean over labels of a utility of them (tp = t, fp = q - t, fn = p - t,
    tn = 1 - q - p + t). One row after another is decided anew with all others held fixed, in random
    order, until a sweep changes nothing or improves by less than ``tol``. After the annealed sweeps
    the utility never falls.
    The result is a local optimum: ``converged_`` says that no row can improve it alone, and
    ``n_starts`` tries several.

    Parameters
    ----------
    metric : str or callable
        "macro_precision", "macro_recall", "macro_f1", "macro_f_beta" (with ``beta``),
        "macro_jaccard", "macro_balanced_accuracy", "macro_g_mean" (of recall and specificity),
        "macro_h_mean" (likewise), "macro_fowlkes_mallows" (of precision and recall), "coverage"
        (expected share of labels with a true positive), "precision" (which is plain top-k), or a
        function of arrays (tp, fp, fn, tn), fractions of the rows, one entry per label, that
        returns one value per label and does not reward false positives.
    k : int or None
        Labels per row; None with ``budget="at_most"`` sets no limit.
    budget : str
        "exactly" k, or "at_most" k: then a label is named only if that raises the metric.
    precision_weight : float
        w in the objective (1 - w) * metric + w * precision at k.
    init : str, TopK or pair of arrays
        Where to start: "weighted" (the best for macro-recall), "greedy" (nothing named yet), "top"
        (the k most probable), "random", or a ``TopK`` of labels.
    n_starts : int or None
        How many starts to try, each with its own orders of the rows; after the first come "top",
        then "greedy" and "random" in turn. The best answer is kept. None: 8 for small problems
        (fewer than 10,000 candidates in all), where local optima are far apart, else 1.
    tol : float
        Stop when a sweep improves the objective by less; 0 goes on until nothing changes.
    max_sweeps : int
        Most passes over the rows.
    annealing : sequence of float
        Weights of precision in the first sweeps, one each, where larger than ``precision_weight``:
        a smoother objective, from which better optima are reached. () for none.
    shuffle : bool
        Visit the rows in a new random order in every sweep; False goes in their own order.
    candidates_only : bool
        Never name a label that is not stored in a sparse ``eta``. By default a row that must name
        exactly k labels also considers the others, at probability 0: where every remaining
        candidate would lower the metric, a label that is right nowhere costs nothing.
    beta : float
        Of F-beta.
    epsilon : float
        Added to the denominators; 0/0 is 0 without it.
    certify : bool
        Also compute ``upper_bound_``, which no answer can exceed.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        Seed; threads (one start each). Results do not depend on the latter.

    Chosen labels come most probable first, their probabilities are the scores. After ``select``:
    ``utility_`` (expected objective), ``utilities_`` (of the start, then after each sweep),
    ``n_sweeps_``, ``converged_``, ``start_utilities_``; with ``certify``, ``upper_bound_`` and
    ``gap_`` (the bound less the utility).

    >>> eta = np.array([[0.9, 0.8, 0.1], [0.8, 0.7, 0.2], [0.7, 0.2, 0.3]])
    >>> rule = BlockCoordinateAscent("macro_f1", k=1, random_state=0)
    >>> rule.select(eta).indices.ravel(), round(rule.utility_, 7)
    (array([1, 0, 2], dtype=int32), 0.4793936)

    The metric is the expectation under ``eta`` of counts, put into the utility; it is exact where
    the utility is linear in t and p, and off by O(1/sqrt(n)) otherwise. Evaluate with true labels.

    E. Schultheis, M. Wydmuch, W. Kotłowski, R. Babbar and K. Dembczyński, "Generalized test
    utilities for long-tail performance in extreme multi-label classification", NeurIPS 2023,
    algorithm 1. Prefer ``WeightedTopK`` where a closed form exists, ``FrankWolfe`` to decide rows
    that arrive later, ``OnlineRule`` to decide them one by one.
    """

    type_tag = "block-coordinate-ascent"

    utility_: float
    utilities_: np.ndarray
    start_utilities_: np.ndarray
    n_sweeps_: int
    converged_: bool
    upper_bound_: float
    gap_: float

    def __init__(
        self,
        metric: str | Callable[..., Any] = "macro_f1",
        k: int | None = 5,
        *,
        budget: str = "exactly",
        precision_weight: float = 0.0,
        init: Any = "weighted",
        n_starts: int | None = None,
        tol: float = 1e-7,
        max_sweeps: int = 100,
        annealing: Sequence[float] = (0.1, 0.05, 0.02, 0.01, 0.005),
        shuffle: bool = True,
        candidates_only: bool = False,
        beta: float = 1.0,
        epsilon: float = 0.0,
        certify: bool = False,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.metric = metric
        self.k = k
        self.budget = budget
        self.precision_weight = precision_weight
        self.init = init
        self.n_starts = n_starts
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.annealing = annealing
        self.shuffle = shuffle
        self.candidates_only = candidates_only
        self.beta = beta
        self.epsilon = epsilon
        self.certify = certify
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _select(self, found: Candidates) -> TopK:
        n_starts = self.n_starts
        if n_starts is None:
            n_starts = 8 if len(found.values) < 10_000 else 1
        if as_k(n_starts, "n_starts") > _MOST_STARTS:
            raise ValueError(f"n_starts must be at most {_MOST_STARTS}, got {n_starts}")
        others = ["top", *["greedy", "random"] * n_starts]
        starts = [self.init, *others[: n_starts - 1]]
        seed = as_seed(self.random_state)
        runs = [((seed + r) % 2**64, self.precision_weight, s) for r, s in enumerate(starts)]
        results = ascend(self, found, runs)
        utilities = np.array([trace[-1] for _, _, trace, _ in results])
        ids, etas, trace, converged = results[int(np.argmax(utilities))]
        self.start_utilities_ = utilities
        self.utilities_, self.utility_ = trace, float(trace[-1])
        self.n_sweeps_, self.converged_ = len(trace) - 1, bool(converged)
        if self.certify:
            weight = precision_share(self.metric, self.precision_weight, self.k)
            constants = Constants(self.beta**2, self.epsilon)
            self.upper_bound_ = upper_bound(found, self.metric, ids.shape[1], weight, constants)
            self.gap_ = max(0.0, self.upper_bound_ - self.utility_)
        return by_probability(ids, etas, found.n_labels)


Run = tuple[int, float, Any]  # seed, weight of precision, start
Outcome = tuple[np.ndarray, np.ndarray, np.ndarray, bool]  # ids, their eta, trace, converged


def ascend(rule: BlockCoordinateAscent, found: Candidates, runs: list[Run]) -> list[Outcome]:
    """Solve several runs, side by side where there are threads."""
    exactly = is_exact(rule.budget)
    k = _slots(rule, found, exactly)
    for name in ("tol", "epsilon", "beta"):
        value = getattr(rule, name)
        if not (np.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a number of at least 0, got {value!r}")
    if isinstance(rule.metric, str):
        check_name(rule.metric, coverage=True)
        native, function = native_name(rule.metric), None
    else:
        native, function = "function", per_label(rule.metric)
    weights = [precision_share(rule.metric, weight, rule.k) for _, weight, _ in runs]
    if found.n_rows == 0 or found.n_labels == 0:
        empty = np.full((found.n_rows, k), -1, np.int32)
        return [(empty, np.zeros(empty.shape, np.float32), np.zeros(1), True) for _ in runs]
    results = core.block_ascent(
        found.args,
        native,
        function,
        float(rule.beta),
        float(rule.epsilon),
        k,
        exactly,
        bool(rule.candidates_only),
        found.allowed,
        float(rule.tol),
        as_k(rule.max_sweeps, "max_sweeps"),
        _annealing(rule),
        bool(rule.shuffle),
        [
            (seed, weight, _start(start, found, k, rule))
            for (seed, _, start), weight in zip(runs, weights, strict=True)
        ],
        n_threads(rule.n_jobs),
        None,
    )
    return list(results)


def _annealing(rule: BlockCoordinateAscent) -> list[float]:
    weights = [float(weight) for weight in rule.annealing]
    if not all(0 <= weight <= 1 for weight in weights):
        raise ValueError(f"annealing must hold weights in [0, 1], got {rule.annealing!r}")
    # Precision alone needs none, and what remains needs a sweep.
    return [] if rule.metric == "precision" else weights[: rule.max_sweeps - 1]


def _slots(rule: BlockCoordinateAscent, found: Candidates, exactly: bool) -> int:
    if rule.k is not None:
        return as_width(rule.k, found.n_labels)
    if exactly:
        raise ValueError('k=None needs budget="at_most": exactly how many labels otherwise?')
    return max(1, found.longest)


def _start(start: Any, found: Candidates, k: int, rule: BlockCoordinateAscent) -> Any:
    if isinstance(start, TopK):
        ids = np.full((found.n_rows, k), -1, np.int32)
        if len(start) != found.n_rows:
            raise ValueError(f"init has {len(start)} rows, eta has {found.n_rows}")
        if start.indices.max(initial=-1) >= found.n_labels:
            raise ValueError(f"init names label {start.indices.max()} of {found.n_labels}")
        width = min(k, start.k)
        ids[:, :width] = start.indices[:, :width]
        return ids
    if start in ("top", "weighted"):
        a = None
        if start == "weighted":  # a label that no row has stays at the bottom
            p = found.expected_positives()
            a = np.divide(1.0, p, out=np.zeros_like(p), where=p > 0)
        only = rule.candidates_only or rule.budget == "at_most"
        return decide_linear(
            found, a, None, k, exactly=True, candidates_only=only, n_jobs=rule.n_jobs
        )[0]
    if start in ("greedy", "random"):
        return "empty" if start == "greedy" else "random"
    raise ValueError(f'init must be "weighted", "greedy", "top", "random" or a TopK, got {start!r}')
