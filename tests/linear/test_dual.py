"""Dual coordinate descent: it ends at the optimum, whatever the costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.linear.train.level import LevelProblem, all_rows, train_level
from longtail.linear.train.solver_options import SolverOptions


def solve(
    X: np.ndarray, Y: np.ndarray, loss: str = "squared_hinge", bias: float = 1.0, **problem: Any
) -> np.ndarray:
    """Weights (L, d + 1) to a tight tolerance, nothing pruned."""
    options = SolverOptions(
        loss=loss, solver="dual", tolerance=1e-4, max_iter=100_000, bias=bias, threshold=0.0
    )
    level = LevelProblem(
        parents=all_rows(len(X)),
        child_ptr=np.array([0, Y.shape[1]]),
        positives=sp.csc_matrix(Y.astype(np.float32)),
        **problem,
    )
    rows = sp.csr_matrix(X.astype(np.float32))
    layer = train_level(rows, level, options, seed=1, n_threads=1)
    return layer.to_csr(X.shape[1]).toarray().astype(np.float64)


def with_bias(X: np.ndarray, bias: float = 1.0) -> np.ndarray:
    return np.hstack([X, np.full((len(X), 1), bias)])


def small(seed: int = 0, n: int = 20, d: int = 5, n_labels: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32).astype(np.float64)
    Y = (X @ rng.standard_normal((d, n_labels)) + rng.standard_normal((n, n_labels))) > 0.5
    return X, Y


def primal(w: np.ndarray, X: np.ndarray, y: np.ndarray, cost: Any, loss: str) -> float:
    slack = np.maximum(0, 1 - y * (X @ w))
    power = 2 if loss == "squared_hinge" else 1
    return float(w @ w / 2 + (cost * slack**power).sum())


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_primal_dual_gap(C: float, seed: int) -> None:
    """At the optimum a_i = 2 C max(0, 1 - y_i w.x_i), w = sum_i a_i y_i x_i, and the gap is 0."""
    X, Y = small(seed)
    weights = solve(X, Y, positive_cost=C, negative_cost=C)
    rows = with_bias(X)
    for label in range(3):
        w, y = weights[label], np.where(Y[:, label], 1, -1)
        alpha = 2 * C * np.maximum(0, 1 - y * (rows @ w))
        combined = (alpha * y) @ rows
        np.testing.assert_allclose(w, combined, atol=2e-3 * max(1, C))
        value = primal(w, rows, y, C, "squared_hinge")
        dual = alpha.sum() - combined @ combined / 2 - (alpha**2).sum() / (4 * C)
        assert -1e-5 * value < value - dual < 1e-3 * value


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("bias", [0.0, 1.0, 3.0])
def test_the_objective_is_that_of_liblinear(loss: str, bias: float) -> None:
    from sklearn.svm import LinearSVC

    X, Y = small(4, n=40, n_labels=2)
    weights = solve(X, Y, loss, bias, positive_cost=0.7, negative_cost=0.7)
    rows = with_bias(X, bias)
    for label in range(2):
        y = np.where(Y[:, label], 1, -1)
        peer = LinearSVC(
            loss=loss, C=0.7, dual=True, fit_intercept=False, tol=1e-7, max_iter=200_000
        ).fit(rows, y)
        w = weights[label].copy()
        w[-1] = w[-1] / bias if bias else 0.0  # the layer holds the bias times its feature
        mine = primal(w, rows, y, 0.7, loss)
        assert mine == pytest.approx(primal(peer.coef_[0], rows, y, 0.7, loss), rel=1e-4)
        np.testing.assert_allclose(w, peer.coef_[0], atol=5e-3)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_row_of_weight_two_is_a_row_twice(loss: str) -> None:
    X, Y = small(1)
    twice = np.r_[np.arange(20), [2, 5, 11]]
    weight = np.ones(20, np.float32)
    weight[[2, 5, 11]] = 2
    limit = 1e-3 if loss == "squared_hinge" else 1e-2
    weighted = solve(X, Y, loss, row_weight=weight)
    np.testing.assert_allclose(weighted, solve(X[twice], Y[twice], loss), atol=limit)
    assert abs(weighted - solve(X, Y, loss)).max() > 10 * limit


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_positives_of_cost_two_are_positives_twice(loss: str) -> None:
    X, Y = small(2, n_labels=1)
    twice = np.r_[np.arange(20), np.flatnonzero(Y[:, 0])]
    limit = 1e-3 if loss == "squared_hinge" else 1e-2
    weighted = solve(X, Y, loss, positive_cost=2.0)
    np.testing.assert_allclose(weighted, solve(X[twice], Y[twice], loss), atol=limit)
    again = solve(X, Y, loss, relevance=np.full(Y.sum(), 2, np.float32))
    np.testing.assert_allclose(weighted, again, atol=limit)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_rows_of_weight_zero_do_not_exist(loss: str) -> None:
    X, Y = small(3)
    weight = np.ones(20, np.float32)
    weight[::3] = 0
    kept = weight > 0
    limit = 1e-3 if loss == "squared_hinge" else 1e-2
    np.testing.assert_allclose(
        solve(X, Y, loss, row_weight=weight), solve(X[kept], Y[kept], loss), atol=limit
    )
    assert abs(solve(X, Y, loss, positive_cost=0.0, negative_cost=0.0)).max() < 1e-6


def test_each_label_has_its_own_costs() -> None:
    X, Y = small(5, n_labels=20)  # more than a block of 16
    positive, negative = np.linspace(0.1, 3, 20), np.linspace(2, 0.2, 20)
    together = solve(X, Y, positive_cost=positive, negative_cost=negative)
    for label in (0, 15, 16, 19):
        alone = solve(
            X,
            Y[:, [label]],
            positive_cost=positive[label],
            negative_cost=negative[label],
        )
        np.testing.assert_allclose(together[label], alone[0], atol=1e-3)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), d=st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_no_step_of_the_weights_lowers_the_objective(seed: int, n: int, d: int) -> None:
    """The gradient of the squared hinge vanishes, for any data, labels and costs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32) * (rng.random((n, d)) < 0.7)
    X = X.astype(np.float64)
    Y = rng.random((n, 2)) < rng.random()
    cost = rng.random(n).astype(np.float32) + 0.05
    weights, rows = solve(X, Y, row_weight=cost), with_bias(X)
    for label in range(2):
        w, y = weights[label], np.where(Y[:, label], 1, -1)
        slack = np.maximum(0, 1 - y * (rows @ w))
        gradient = w - (2 * cost * slack * y) @ rows
        assert abs(gradient).max() < 2e-3 * (1 + n)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_features_of_a_single_row(loss: str) -> None:
    """They are folded into the diagonal; what comes out is what any solver finds."""
    from sklearn.svm import LinearSVC

    X, Y = small(9, n=60, n_labels=2)
    own = np.diag(np.linspace(0.2, 2, 60).astype(np.float32).astype(np.float64))
    X = np.hstack([X, own[:, ::2]])  # of every other row
    weights, rows = solve(X, Y, loss, positive_cost=0.7, negative_cost=0.7), with_bias(X)
    for label in range(2):
        y = np.where(Y[:, label], 1, -1)
        peer = LinearSVC(
            loss=loss, C=0.7, dual=True, fit_intercept=False, tol=1e-7, max_iter=200_000
        ).fit(rows, y)
        np.testing.assert_allclose(weights[label], peer.coef_[0], atol=1e-2)
        assert (weights[label, 5:-1] != 0).any()


def test_few_passes_see_every_row() -> None:
    """Descent begins with a sample of the negatives only where it has time to see the others."""
    X = np.eye(64)
    Y = np.zeros((64, 1), bool)
    Y[0] = True
    options = SolverOptions(solver="dual", max_iter=1, bias=0.0, threshold=0.0)
    level = LevelProblem(
        parents=all_rows(64), child_ptr=np.array([0, 1]), positives=sp.csc_matrix(Y, dtype=float)
    )
    rows = sp.csr_matrix(X.astype(np.float32))
    layer = train_level(rows, level, options, seed=1, n_threads=1)
    assert (layer.to_csr(64).toarray()[0, :-1] != 0).all()


def test_labels_without_positives_and_rows_without_features() -> None:
    X, Y = small(6)
    X[::4] = 0
    Y[:, 1] = False
    weights, rows = solve(X, Y), with_bias(X)
    for label in range(3):
        y = np.where(Y[:, label], 1, -1)
        slack = np.maximum(0, 1 - y * (rows @ weights[label]))
        assert abs(weights[label] - (2 * slack * y) @ rows).max() < 5e-3
    assert (rows @ weights[1] < 0).all()


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ({"positive_cost": -1.0}, "positive_cost must be finite and not negative"),
        ({"negative_cost": np.nan}, "negative_cost must be finite and not negative"),
        ({"positive_cost": [1.0, 2.0]}, "positive_cost must be a number or one per label"),
        ({"row_weight": np.ones(3, np.float32)}, "row_weight must be one number per row"),
    ],
)
def test_costs_that_make_no_sense(problem: dict[str, Any], message: str) -> None:
    X, Y = small(7)
    with pytest.raises(ValueError, match=message):
        solve(X, Y, **problem)


def test_positives_outside_the_rows_of_their_parent_are_refused() -> None:
    X, Y = small(8)
    problem = LevelProblem(
        parents=sp.csc_matrix(np.r_[np.ones(10), np.zeros(10)][:, None].astype(np.float32)),
        child_ptr=np.array([0, 3]),
        positives=sp.csc_matrix(np.ones_like(Y, dtype=np.float32)),
    )
    with pytest.raises(ValueError, match="row 10 is positive for a child of node 0 but not among"):
        train_level(
            sp.csr_matrix(X.astype(np.float32)), problem, SolverOptions(), seed=0, n_threads=2
        )
