"""Block coordinate ascent: worked cases, brute force, sparse against dense, other starts."""

from __future__ import annotations

import signal

import numpy as np
import pytest
import scipy.sparse as sp
from decide_cases import (
    CELLS,
    METRICS,
    WORKED,
    as_binary,
    brute_force,
    expected,
    f1,
    row_choices,
)

import longtail as lt
from longtail import BlockCoordinateAscent, TopK
from longtail.decide import WeightedTopK


def test_worked_case() -> None:
    rule = BlockCoordinateAscent(
        "macro_f1", k=1, init="top", annealing=(), n_starts=1, random_state=0
    )
    assert rule.select(WORKED).indices.ravel().tolist() == [1, 0, 2]
    np.testing.assert_allclose(rule.utilities_[:2], [0.2962963, 0.4793936], atol=5e-8)
    assert rule.converged_
    assert rule.utility_ == pytest.approx(brute_force("macro_f1", WORKED, 1), abs=1e-12)
    rule = BlockCoordinateAscent("macro_precision", k=1, random_state=0)
    assert as_binary(rule.select(WORKED), 3).sum() == 3
    assert rule.utility_ == pytest.approx(0.6333333, abs=5e-8)


def test_expected_utility_of_the_worked_answer_by_enumeration() -> None:
    """Over all truths, macro-precision is exactly what BCA claims; macro-F1 is not (card 9)."""
    chosen = np.eye(3)[[1, 0, 2]]
    exact = {"macro_f1": 0.0, "macro_precision": 0.0}
    for bits in range(2**9):
        truth = ((bits >> np.arange(9)) & 1).reshape(3, 3)
        chance = np.prod(np.where(truth, WORKED, 1 - WORKED))
        cells = [(a * b).mean(axis=0) for b in (chosen, 1 - chosen) for a in (truth, 1 - truth)]
        for name in exact:
            exact[name] += chance * CELLS[name](*cells).mean()
    assert exact["macro_f1"] == pytest.approx(0.4356667, abs=5e-8)
    assert exact["macro_precision"] == pytest.approx(0.6333333, abs=5e-8)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("budget", ["exactly", "at_most"])
def test_no_row_can_improve_and_brute_force_stays_below_the_bound(metric: str, budget: str) -> None:
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(40):
        n, m = rng.integers(1, 5, size=2)
        k = int(rng.integers(1, min(m, 2) + 1))
        eta = rng.random((n, m)) ** 2
        rule = BlockCoordinateAscent(
            metric, k=k, budget=budget, n_starts=8, tol=0, certify=True, random_state=1
        )
        chosen = as_binary(rule.select(eta), m)
        exactly = budget == "exactly"
        assert (chosen.sum(axis=1) == k).all() if exactly else (chosen.sum(axis=1) <= k).all()
        assert rule.utility_ == pytest.approx(expected(metric, eta, chosen, k), abs=1e-12)
        steps = np.diff(rule.utilities_[len(rule.annealing) :])
        assert rule.converged_ and (steps >= -1e-15).all()
        for i in range(n):
            for row in row_choices(m, k, exactly):
                other = chosen.copy()
                other[i] = row
                assert expected(metric, eta, other, k) <= rule.utility_ + 1e-12
        best = brute_force(metric, eta, k, exactly)
        assert rule.utility_ <= best + 1e-12 <= rule.upper_bound_ + 1e-9
        assert rule.gap_ == pytest.approx(max(0, rule.upper_bound_ - rule.utility_), abs=1e-12)
        gaps.append(best - rule.utility_)
    # Local optima: with eight starts few of forty problems end in one, and none far off.
    assert np.mean(np.array(gaps) > 1e-9) <= 0.1
    assert max(gaps) < 0.2


@pytest.mark.parametrize("metric", [m for m in METRICS if m != "precision"])
def test_mixture_with_precision(metric: str) -> None:
    rng = np.random.default_rng(3)
    eta = rng.random((4, 4))
    rule = BlockCoordinateAscent(
        metric, k=2, precision_weight=0.4, n_starts=8, tol=0, random_state=0, certify=True
    )
    chosen = as_binary(rule.select(eta), 4)
    assert rule.utility_ == pytest.approx(expected(metric, eta, chosen, 2, 0.4), abs=1e-12)
    best = brute_force(metric, eta, 2, weight=0.4)
    assert best - 0.01 <= rule.utility_ <= best + 1e-12 <= rule.upper_bound_ + 1e-9


@pytest.mark.parametrize("name", list(CELLS))
@pytest.mark.parametrize("budget", ["exactly", "at_most"])
def test_a_function_gives_the_same_as_the_name(name: str, budget: str) -> None:
    rng = np.random.default_rng(5)
    eta = sp.csr_matrix(rng.random((60, 30)) * (rng.random((60, 30)) < 0.3))
    by_name, by_function = (
        BlockCoordinateAscent(metric, k=3, budget=budget, random_state=0)
        for metric in (name, CELLS[name])
    )
    by_name.select(eta)
    by_function.select(eta)
    np.testing.assert_allclose(by_function.utilities_, by_name.utilities_, atol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("init", ["weighted", "greedy"])
def test_sparse_answers_like_dense_with_zeros(metric: str, init: str) -> None:
    """Labels that are absent from a row have probability 0, and may be the cheapest to name."""
    rng = np.random.default_rng(7)
    for density in (0.05, 0.2, 0.5):
        dense = np.where(rng.random((50, 40)) < density, rng.random((50, 40)), 0)
        kwargs = {"k": 4, "init": init, "n_starts": 1, "random_state": 2}
        rules = [BlockCoordinateAscent(metric, **kwargs) for _ in range(2)]
        answers = [rules[0].select(dense), rules[1].select(sp.csr_matrix(dense))]
        np.testing.assert_allclose(rules[1].utilities_, rules[0].utilities_, rtol=0, atol=1e-12)
        assert answers[0] == answers[1]
        assert ((answers[1].indices >= 0).sum(axis=1) == 4).all()


def test_absent_labels_help_where_every_candidate_costs() -> None:
    """The trap of sparse candidates: naming label 1 once more only adds a false positive."""
    eta = sp.csr_matrix(np.array([[0.9, 0.5, 0, 0], [0.9, 0.01, 0, 0], [0.8, 0.01, 0, 0]]))
    with_absent = BlockCoordinateAscent("macro_precision", k=2, random_state=0)
    without = BlockCoordinateAscent("macro_precision", k=2, candidates_only=True, random_state=0)
    chosen, only = with_absent.select(eta), without.select(eta)
    assert with_absent.utility_ > without.utility_ + 0.05
    assert set(chosen.indices[1]) & {2, 3} and not set(only.indices.ravel()) & {2, 3}
    assert (chosen.scores[chosen.indices >= 2] == 0).all()


def test_closed_forms_agree() -> None:
    rng = np.random.default_rng(0)
    eta = rng.random((40, 12))
    rule = BlockCoordinateAscent("macro_recall", k=3, tol=0, random_state=0)
    weighted = WeightedTopK("macro_recall", k=3).select(eta)
    assert (as_binary(rule.select(eta), 12) == as_binary(weighted, 12)).all()
    rule = BlockCoordinateAscent("macro_balanced_accuracy", k=3, tol=0, random_state=0)
    weighted = WeightedTopK("macro_balanced_accuracy", k=3).select(eta)
    assert (as_binary(rule.select(eta), 12) == as_binary(weighted, 12)).all()
    rule = BlockCoordinateAscent("precision", k=3, random_state=0)
    assert rule.select(eta) == lt.TopK.from_scores(eta, 3)
    rule = BlockCoordinateAscent("macro_f1", k=3, precision_weight=1.0, random_state=0)
    assert rule.select(eta) == lt.TopK.from_scores(eta, 3)


def test_coverage_with_certain_labels() -> None:
    """eta = 1 makes the chance of a miss 0; it must come back when the row changes its mind."""
    eta = np.array([[1.0, 0.9, 0.0], [1.0, 0.0, 0.3], [1.0, 0.4, 0.0]])
    rule = BlockCoordinateAscent("coverage", k=1, n_starts=5, random_state=0)
    chosen = as_binary(rule.select(eta), 3)
    assert rule.utility_ == pytest.approx(expected("coverage", eta, chosen), abs=1e-12)
    assert rule.utility_ == pytest.approx(brute_force("coverage", eta, 1), abs=1e-12)
    many = np.full((3000, 2), 0.7)  # 0.3 ** 3000 is 0 in floating point
    rule = BlockCoordinateAscent("coverage", k=1, random_state=0)
    rule.select(many)
    assert rule.utility_ == pytest.approx(1.0)


def test_same_seed_same_bits_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    eta = sp.csr_matrix(np.where(rng.random((400, 100)) < 0.2, rng.random((400, 100)), 0))
    answers = []
    for n_jobs in (1, 2, 7):
        rule = BlockCoordinateAscent("macro_f1", k=3, n_starts=4, random_state=5, n_jobs=n_jobs)
        answers.append((rule.select(eta), rule.start_utilities_.tobytes()))
    assert answers[0] == answers[1] == answers[2]
    other = BlockCoordinateAscent("macro_f1", k=3, n_starts=4, random_state=6)
    other.select(eta)
    assert other.start_utilities_.tobytes() != answers[0][1]


def test_topk_csr_and_a_given_start_agree() -> None:
    rng = np.random.default_rng(1)
    eta = sp.csr_matrix(np.where(rng.random((80, 50)) < 0.2, rng.random((80, 50)), 0))
    rule = BlockCoordinateAscent("macro_f1", k=3, n_starts=1, random_state=0)
    from_csr = rule.select(eta)
    assert rule.select(TopK.from_scores(eta, 50)) == from_csr
    again = BlockCoordinateAscent(
        "macro_f1", k=3, init=from_csr, tol=0, annealing=(), n_starts=1, random_state=9
    )
    again.select(eta)
    assert again.utilities_[0] == pytest.approx(rule.utility_, abs=1e-12)
    assert again.utility_ >= rule.utility_ - 1e-12


def test_no_limit_names_what_gains() -> None:
    eta = np.array([[0.9, 0.8, 0.01], [0.02, 0.9, 0.9]])
    rule = BlockCoordinateAscent("macro_f1", k=None, budget="at_most", random_state=0)
    chosen = as_binary(rule.select(eta), 3)
    assert (chosen == (eta > 0.5)).all()


def test_errors_of_a_function_come_through() -> None:
    with pytest.raises(ZeroDivisionError):
        BlockCoordinateAscent(lambda *cells: 1 / 0, k=1).select(WORKED)
    with pytest.raises(ValueError, match=r"\(3,\)"):
        BlockCoordinateAscent(lambda tp, fp, fn, tn: tp.mean(), k=1).select(WORKED)
    with pytest.raises(ValueError, match="NaN"):
        BlockCoordinateAscent(lambda tp, fp, fn, tn: tp * np.nan, k=1).select(WORKED)
    assert f1(1.0, 0.0, 0.0, 0.0) == 1


@pytest.mark.parametrize("n_starts", [1, 3])
def test_ctrl_c_stops_a_long_ascent(n_starts: int) -> None:
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, 900, size=(60_000, 40), dtype=np.int32), axis=1)
    ids += np.arange(40, dtype=np.int32)
    scores = -np.sort(-rng.random(ids.shape, dtype=np.float32), axis=1)
    rule = BlockCoordinateAscent(k=5, tol=0, max_sweeps=100_000, n_starts=n_starts, random_state=0)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            rule.set_params(annealing=[0.5 + 0.4 * (i % 2) for i in range(50_000)])
            rule.select(TopK(ids, scores, n_labels=1000))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_utility_is_that_of_the_last_sweep() -> None:
    eta = np.random.default_rng(0).random((30, 8)).astype(np.float32)
    rule = BlockCoordinateAscent(
        "macro_f1", k=2, init="top", annealing=(), n_starts=1, max_sweeps=1
    )
    chosen = as_binary(rule.select(eta), 8)
    assert len(rule.utilities_) == 2 and rule.utilities_[1] > rule.utilities_[0]
    assert rule.n_sweeps_ == 1
    assert rule.utility_ == pytest.approx(expected("macro_f1", eta, chosen, 2), abs=1e-12)


def test_weights_of_annealing_lie_in_0_to_1() -> None:
    for weights in ((0.0,), (1.0, 0.5, 0.0)):
        BlockCoordinateAscent("macro_f1", k=1, annealing=weights).select(WORKED)
    for weights in ((-0.01,), (0.5, 1.01), (float("nan"),)):
        with pytest.raises(ValueError, match="annealing"):
            BlockCoordinateAscent("macro_f1", k=1, annealing=weights).select(WORKED)


def test_the_last_sweep_is_never_one_of_annealing() -> None:
    eta = np.random.default_rng(0).random((30, 8)).astype(np.float32)
    same = {"k": 2, "n_starts": 1, "max_sweeps": 1}
    with_, without = (
        BlockCoordinateAscent("macro_f1", annealing=weights, **same) for weights in ((1.0, 1.0), ())
    )
    assert with_.select(eta) == without.select(eta)
    np.testing.assert_array_equal(with_.utilities_, without.utilities_)


def test_every_start_has_a_seed_of_its_own() -> None:
    eta = np.random.default_rng(0).random((30, 8)).astype(np.float32)
    same = {"k": 2, "init": "random", "max_sweeps": 1}
    several = BlockCoordinateAscent("macro_f1", n_starts=4, random_state=5, **same)
    several.select(eta)
    alone = BlockCoordinateAscent("macro_f1", n_starts=1, random_state=5 + 3, **same)
    alone.select(eta)
    assert several.start_utilities_[3] == alone.utility_ != several.start_utilities_[0]


def test_large_problems_are_started_once() -> None:
    eta = np.random.default_rng(0).random((100, 100)).astype(np.float32)
    for rows, n_starts in ((99, 8), (100, 1)):
        rule = BlockCoordinateAscent("macro_recall", k=1)
        rule.select(eta[:rows])
        assert len(rule.start_utilities_) == n_starts


def test_a_start_may_name_the_only_label() -> None:
    start = TopK([[0]], [[1.0]], n_labels=1)
    rule = BlockCoordinateAscent("macro_f1", k=1, init=start)
    assert rule.select(np.array([[0.5]])).indices.tolist() == [[0]]


def test_the_first_answer_fills_all_slots() -> None:
    eta = np.array([[0.5, 0.0], [0.5, 0.0]])
    metric = "macro_balanced_accuracy"
    rule = BlockCoordinateAscent(metric, k=2, init="top", annealing=(), n_starts=1)
    rule.select(eta)
    assert rule.utilities_[0] == pytest.approx(expected(metric, eta, np.ones((2, 2)), 2))


def test_the_bound_of_coverage_is_reached_without_a_budget() -> None:
    eta = np.array([[0.5, 0.1], [0.2, 0.3]])
    rule = BlockCoordinateAscent("coverage", k=2, certify=True)
    rule.select(eta)
    assert rule.upper_bound_ == pytest.approx(rule.utility_)
    assert rule.upper_bound_ == pytest.approx((1 - np.prod(1 - eta, axis=0)).mean())
    rule.select(np.zeros((0, 2)))
    assert rule.upper_bound_ == 0
