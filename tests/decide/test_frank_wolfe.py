"""Frank-Wolfe: the worked case, fine grids, linear metrics in one step, sampling, saving."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from decide_cases import CELLS, f1

import longtail as lt
from longtail import FrankWolfe
from longtail._models import from_state
from longtail.decide import TopKRule, WeightedTopK, madow_sample
from longtail.decide.line_search import best_step
from longtail.decide.mixture import Mixture, _exchange
from longtail.decide.objective import Counts, Objective
from longtail.decide.utilities import MACRO, Constants, as_utility, cells, utility_names

TWO = np.array([[0.9, 0.6], [0.4, 0.3]], np.float32).astype(np.float64)


def grid_optimum(metric: str, eta: np.ndarray) -> float:
    """The best randomised answer to two inputs with two labels, k = 1: a grid, then finer ones."""
    p = eta.mean(axis=0)

    def value(h0: np.ndarray, h1: np.ndarray) -> np.ndarray:
        out = 0.0
        for j, (x0, x1) in enumerate([(h0, h1), (1 - h0, 1 - h1)]):
            tp = (x0 * eta[0, j] + x1 * eta[1, j]) / 2
            q = (x0 + x1) / 2
            out = out + CELLS[metric](tp, q - tp, p[j] - tp, 1 - q - p[j] + tp) / 2
        return np.asarray(out)

    center, width, best = (0.5, 0.5), 0.5, -1.0
    for _ in range(5):
        axes = [np.clip(np.linspace(c - width, c + width, 151), 0, 1) for c in center]
        values = value(*np.meshgrid(*axes, indexing="ij"))
        i, j = np.unravel_index(values.argmax(), values.shape)
        best, center, width = max(best, values.max()), (axes[0][i], axes[1][j]), width / 20
    return float(best)


def test_worked_case() -> None:
    rule = FrankWolfe("macro_f1", k=1, random_state=0).fit(TWO, TWO)
    assert rule.utility_ == pytest.approx(0.549351, abs=5e-7)
    assert rule.utility_ > 0.549199 + 1e-4  # the best rule without chance
    np.testing.assert_allclose(rule.marginals(TWO).toarray(), [[0.974, 0.026], [0, 1]], atol=1e-3)
    assert rule.weights_.sum() == pytest.approx(1)
    assert (np.diff(rule.utilities_) >= 0).all()


@pytest.mark.parametrize("metric", ["macro_f1", "macro_jaccard", "macro_fowlkes_mallows"])
def test_two_labels_against_a_fine_grid(metric: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(12):
        eta = rng.random((2, 2)).astype(np.float32).astype(np.float64)
        rule = FrankWolfe(metric, k=1, random_starts=6, random_state=0).fit(eta, eta)
        assert rule.utility_ >= grid_optimum(metric, eta) - 1e-5


@pytest.mark.parametrize("metric", ["macro_g_mean", "macro_h_mean", "macro_balanced_accuracy"])
def test_concave_metrics_against_a_fine_grid(metric: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        eta = rng.random((2, 2)).astype(np.float32).astype(np.float64)
        rule = FrankWolfe(metric, k=1, tol=1e-9).fit(eta, eta)
        best = grid_optimum(metric, eta)
        assert best - 1e-6 <= rule.utility_ <= best + 1e-6
        assert rule.gap_ >= best - rule.utility_ - 1e-8


@pytest.mark.parametrize("epsilon", [0.0, 0.03])
@pytest.mark.parametrize("name", list(MACRO))
def test_slopes_are_derivatives(name: str, epsilon: float) -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(0.2, 0.5, 50)
    t = p * rng.uniform(0.2, 0.8, 50)
    q = t + rng.uniform(0.05, 0.3, 50)
    utility, h = MACRO[name], 1e-6
    c = Constants(beta2=1.0 if name != "macro_f_beta" else 4.0, epsilon=epsilon)
    by_t, by_q = utility.slope(t, q, p, c)
    rise_t = (utility.value(t + h, q, p, c) - utility.value(t - h, q, p, c)) / (2 * h)
    rise_q = (utility.value(t, q + h, p, c) - utility.value(t, q - h, p, c)) / (2 * h)
    np.testing.assert_allclose(by_t, rise_t, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(by_q, rise_q, rtol=1e-6, atol=1e-8)
    if epsilon:
        assert (utility.value(t, q, p, c) < utility.value(t, q, p, Constants(c.beta2))).all()
    elif name in CELLS:
        np.testing.assert_allclose(
            utility.value(t, q, p, c), CELLS[name](t, q - t, p - t, 1 - q - p + t), atol=1e-14
        )


@pytest.mark.parametrize("name", MACRO)
def test_utilities_are_concave_where_they_say_so(name: str) -> None:
    rng = np.random.default_rng(0)
    p = np.full(2000, 0.4)
    t = rng.random((2, 2000)) * 0.4
    q = t + rng.random((2, 2000)) * 0.6
    value = MACRO[name].value
    middle = value(t.mean(axis=0), q.mean(axis=0), p, Constants())
    ends = (value(t[0], q[0], p, Constants()) + value(t[1], q[1], p, Constants())) / 2
    assert (middle >= ends - 1e-12).all() == MACRO[name].concave


def test_with_all_weight_on_precision_the_metric_is_not_asked() -> None:
    def never(*counts: np.ndarray) -> np.ndarray:
        raise AssertionError("the metric has no weight")

    p = np.array([0.5, 0.2])
    objective = Objective(as_utility(never), p, 2, 1.0, Constants())
    counts = Counts(np.array([0.1, 0.1]), np.array([0.5, 0.5]))
    assert objective.value(counts) == pytest.approx(0.2 / 2)
    by_t, by_q = objective.slope(counts)
    assert by_t.tolist() == [0.5, 0.5] and by_q.tolist() == [0.0, 0.0]


def test_slopes_of_an_objective_with_a_share_of_precision() -> None:
    p, h = np.array([0.5, 0.3, 0.2]), 1e-6
    objective = Objective(MACRO["macro_f1"], p, 2, 0.3, Constants())
    t, q = np.array([0.2, 0.1, 0.1]), np.array([0.4, 0.3, 0.2])
    slopes = objective.slope(Counts(t, q))
    for j, step in enumerate(h * np.eye(3)):
        rises = [
            objective.value(Counts(t + step, q)) - objective.value(Counts(t - step, q)),
            objective.value(Counts(t, q + step)) - objective.value(Counts(t, q - step)),
        ]
        np.testing.assert_allclose([s[j] for s in slopes], np.array(rises) / (2 * h), rtol=1e-6)


def test_linear_metrics_need_one_step() -> None:
    rng = np.random.default_rng(3)
    eta = rng.random((30, 8)).astype(np.float32)
    prior = eta.mean(axis=0, dtype=np.float64)
    rule = FrankWolfe("macro_recall", k=2, init="top").fit(eta, eta)
    expected = WeightedTopK("macro_recall", k=2, prior=prior).select(eta)
    assert (rule.select(eta).to_csr(binary=True) != expected.to_csr(binary=True)).nnz == 0
    assert len(rule.weights_) == 1 and rule.gap_ < 1e-9
    plain = FrankWolfe("precision", k=2, init="prior").fit(eta, eta).select(eta)
    assert plain == TopKRule(k=2).select(eta)


def test_functions_and_gradients() -> None:
    rng = np.random.default_rng(4)
    eta = rng.random((40, 6)).astype(np.float32)
    named = FrankWolfe("macro_f1", k=2).fit(eta, eta)
    by_function = FrankWolfe(f1, k=2).fit(eta, eta)
    assert by_function.utility_ == pytest.approx(named.utility_, abs=1e-6)

    def total(tp, fp, fn, tn):  # micro-F1
        return 2 * tp.sum() / (2 * tp.sum() + fp.sum() + fn.sum())

    def gradient(tp, fp, fn, tn):
        below = 2 * tp.sum() + fp.sum() + fn.sum()
        loss = -2 * tp.sum() / below**2
        return 2 / below + 2 * loss, loss, loss, 0.0

    free = FrankWolfe(total, k=3, budget="at_most", gradient=gradient).fit(eta, eta)
    micro = FrankWolfe("micro_f1", k=3, budget="at_most").fit(eta, eta)
    assert free.utility_ == pytest.approx(micro.utility_, abs=1e-7)
    assert micro.utility_ > FrankWolfe("micro_f1", k=3).fit(eta, eta).utility_  # may name fewer


def test_cells_of_counts() -> None:
    t, q, p = np.array([0.1, 0.0]), np.array([0.3, 0.2]), np.array([0.25, 0.5])
    tp, fp, fn, tn = cells(t, q, p)
    for total, expected in ((tp + fp, q), (tp + fn, p), (tp + fp + fn + tn, 1)):
        np.testing.assert_allclose(total, expected)


@pytest.mark.parametrize("name", ["macro_balanced_accuracy", "macro_fowlkes_mallows"])
def test_a_function_of_all_four_counts_is_learned_like_its_name(name: str) -> None:
    eta = np.random.default_rng(5).random((40, 6)).astype(np.float32)
    named, function = (FrankWolfe(metric, k=2).fit(eta, eta) for metric in (name, CELLS[name]))
    assert function.utility_ == pytest.approx(named.utility_, abs=1e-6)


def test_utility_is_that_of_the_drawn_answers() -> None:
    """On average over draws, and exactly for the marginals."""
    rng = np.random.default_rng(6)
    eta = (rng.random((50, 5)) ** 2).astype(np.float32)
    rule = FrankWolfe("macro_f1", k=2, random_state=0).fit(eta, eta)
    h = rule.marginals(eta).toarray().astype(np.float64)
    np.testing.assert_allclose(h.sum(axis=1), 2, atol=1e-5)
    tp, p, q = (h * eta).mean(axis=0), eta.mean(axis=0), h.mean(axis=0)
    assert f1(tp, q - tp, p - tp, 0).mean() == pytest.approx(rule.utility_, abs=1e-6)
    for sampling in ("rule", "madow"):
        total = np.zeros_like(h)
        for seed in range(400):
            rule.set_params(sampling=sampling, random_state=seed)
            answer = rule.select(eta)
            assert (answer.indices >= 0).all()
            total += answer.to_csr(binary=True).toarray()
        assert np.abs(total / 400 - h).max() < 5 * np.sqrt(0.25 / 400)


def test_thresholding_without_a_budget() -> None:
    rng = np.random.default_rng(8)
    eta = rng.random((60, 4)).astype(np.float32)
    rule = FrankWolfe("macro_f1", k=None).fit(eta, eta)
    named = rule.marginals(eta).toarray()
    assert rule.utility_ > FrankWolfe("macro_f1", k=2).fit(eta, eta).utility_
    for j in range(4):  # a threshold a label, up to chance at one value
        assert eta[named[:, j] > 0.999, j].min() >= eta[named[:, j] < 0.001, j].max()


def test_sparse_fit_counts_true_labels_that_are_no_candidates() -> None:
    eta = sp.csr_matrix(np.array([[0.9, 0, 0], [0.8, 0, 0]], np.float32))
    rule = FrankWolfe("macro_recall", k=2, init="top").fit(eta, sp.csr_matrix(
        (np.ones(3), ([0, 1, 1], [0, 0, 2])), shape=(2, 3)))  # fmt: skip
    assert 1 / 3 - 1e-8 <= rule.utility_ <= 2 / 3 + 1e-8
    with pytest.raises(ValueError, match=r"\b3\b"):
        FrankWolfe(k=1).fit(eta, [[0], [0]])


def test_shrinkage_lets_labels_without_positives_be_named() -> None:
    rng = np.random.default_rng(0)
    eta = (rng.random((400, 12)) ** 2).astype(np.float32)
    Y = (rng.random(eta.shape) < eta).astype(np.float32)
    Y[:, 6:] = 0  # never seen in validation
    plain = FrankWolfe("macro_f1", k=2, random_state=0).fit(eta, Y)
    shrunk = FrankWolfe("macro_f1", k=2, shrinkage=0.1, random_state=0).fit(eta, Y)
    assert not (plain.a_[-1, 6:] > 0).any() and (shrunk.a_[-1, 6:] > 0).all()
    assert (shrunk.select(eta).indices >= 6).mean() > (plain.select(eta).indices >= 6).mean()
    own = FrankWolfe("macro_f1", k=2, random_state=0).fit(eta, eta)
    same = FrankWolfe("macro_f1", k=2, shrinkage=1, random_state=0).fit(eta, Y)
    assert same.utility_ == pytest.approx(own.utility_)
    with pytest.raises(ValueError, match="shrinkage"):
        FrankWolfe(shrinkage=2).fit(eta, Y)


def test_duplicate_rules_are_one_rule() -> None:
    eta = np.array([[0.57152981, 0.3218694], [0.59430003, 0.33791122]])
    rule = FrankWolfe("macro_jaccard", k=1, random_state=0).fit(eta, eta)
    assert len(rule.weights_) <= 4  # there are four answers to two rows with two labels
    assert rule.utility_ >= grid_optimum("macro_jaccard", eta) - 1e-8


def test_a_rule_takes_its_share_of_a_mixture() -> None:
    rules = [(np.full(2, i), np.zeros(2)) for i in range(4)]
    counts = [Counts(np.array([i / 8, 0.0]), np.array([i / 4, 0.5])) for i in range(4)]
    mixture = Mixture(rules[0], counts[0])
    mixture.add(rules[1], counts[1], 0.25)
    assert mixture.weights == [0.75, 0.25]
    np.testing.assert_array_equal(mixture.now.t, [1 / 32, 0])
    mixture.add(rules[2], counts[1], 0.5)  # the same answers as of another rule
    assert mixture.weights == [0.375, 0.625] and mixture.rules == rules[:2]
    mixture.add(rules[3], counts[3], 1.0)
    assert mixture.weights == [1.0] and mixture.rules == rules[3:]


class Bowl:
    """A concave objective that is largest where the hits are ``goal``."""

    def __init__(self, goal: list[float]) -> None:
        self.goal = np.array(goal)

    def value(self, c: Counts) -> float:
        return -float(((c.t - self.goal) ** 2).sum())

    def slope(self, c: Counts) -> tuple[np.ndarray, np.ndarray]:
        return -2 * (c.t - self.goal), np.zeros_like(c.t)

    def search(self, start: Counts, end: Counts) -> tuple[float, float]:
        along = lambda steps: [self.value(start.toward(end, float(x))) for x in steps]  # noqa: E731
        return best_step(lambda steps: np.array(along(steps)))


@pytest.mark.parametrize("goal", [[0.3, 0.7], [0.2, 0.3, 0.5]])
def test_rules_exchange_weight_until_it_does_not_pay(goal: list[float]) -> None:
    mixture = None
    for hits in np.eye(len(goal)):
        rule, counts = (hits, hits), Counts(hits, hits)
        if mixture is None:
            mixture = Mixture(rule, counts)
        else:
            mixture.add(rule, counts, 0.1)
    _exchange(mixture, Bowl(goal), 1e-14, 100)
    np.testing.assert_allclose(mixture.weights, goal, atol=1e-5)


def test_starts_by_name() -> None:
    top, prior = FrankWolfe(k=1, init=["top", "prior"])._starts(np.array([0.5, 0.0]))
    assert top[0].tolist() == [1, 1] and prior[0].tolist() == [2, 0]


def test_names_of_utilities() -> None:
    assert "micro_f1" in utility_names(micro=True) and "micro_f1" not in utility_names()
    assert "coverage" in utility_names(coverage=True) and "coverage" not in utility_names()


def test_save_and_load(tmp_path) -> None:
    rule = FrankWolfe("macro_f1", k=1, random_state=0).fit(TWO, TWO)
    rule.save(tmp_path / "rule")
    again = lt.load(tmp_path / "rule")
    assert again.select(TWO) == rule.select(TWO) and again.utility_ == rule.utility_
    for name in ("weights", "utilities"):
        state = rule._get_state()
        if name == "weights":
            state.arrays["a"] = state.arrays["b"] = np.zeros((0, 2))
        state.arrays[name] = np.zeros(0)
        with pytest.raises(lt.ModelFormatError, match="mixture"):
            from_state(state)
    with pytest.raises(TypeError, match="function"):
        FrankWolfe(f1, k=1).fit(TWO, TWO).save(tmp_path / "other")


def test_madow() -> None:
    h = np.array([[0.2, 0.5, 0.9, 0.4], [1.0, 0.0, 1.0, 0.0], [1 / 3] * 3 + [1.0]])
    total = np.zeros_like(h)
    for seed in range(3000):
        sample = madow_sample(h, random_state=seed).toarray()
        assert (sample.sum(axis=1) == 2).all()
        total += sample
    assert np.abs(total / 3000 - h).max() < 5 * np.sqrt(0.25 / 3000)
    with pytest.raises(ValueError, match="marginals"):
        madow_sample([[1.5, 0.5]])
    assert madow_sample(np.zeros((0, 3))).shape == (0, 3)


def test_line_search() -> None:
    two_peaks = lambda x: np.sin(9 * x) + x  # noqa: E731
    step, gain = best_step(two_peaks)
    assert gain == pytest.approx(max(map(two_peaks, np.linspace(0, 1, 100_001))), abs=1e-9)
    assert best_step(lambda x: -x) == (0.0, 0.0)
    assert best_step(lambda x: x)[0] == 1.0
    assert step < 1
    asked: list[np.ndarray] = []
    best_step(lambda x: asked.append(x) or x, n_grid=4)
    assert asked[0].tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_starts_that_are_arrays_are_not_saved(tmp_path) -> None:
    eta = np.random.default_rng(3).random((20, 4)).astype(np.float32)
    pair = (np.ones(4), np.zeros(4))
    for init, kept in ((["prior", pair], ["prior"]), ([pair], "top"), ("prior", "prior")):
        rule = FrankWolfe("macro_f1", k=2, init=init).fit(eta, eta)
        rule.save(tmp_path / "rule", overwrite=True)
        again = lt.load(tmp_path / "rule")
        assert again.init == kept and again.select(eta) == rule.select(eta)
