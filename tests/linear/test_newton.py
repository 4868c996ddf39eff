"""Newton's method: every step is the one of the textbook, and it ends at the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newton_reference import Problem, newton, numeric, optimum, solve, with_bias

SMOOTH = ["squared_hinge", "logistic", "huber_hinge"]
PENALTIES: list[dict[str, Any]] = [
    {},
    {"l2": 0.3},
    {"l2": 0.0, "l1": 1.0},
    {"l2": 0.5, "l1": 0.5, "smoothing": 0.01},
    {"regularize_bias": False},
    {"regularize_bias": False, "l2": 0.5, "l1": 0.2},
]


def small(seed: int = 0, n: int = 40, d: int = 6, n_labels: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32).astype(np.float64)
    Y = (X @ rng.standard_normal((d, n_labels)) + rng.standard_normal((n, n_labels))) > 0.7
    return X, Y


def signs(Y: np.ndarray) -> np.ndarray:
    return np.where(Y, 1.0, -1.0)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_reference_differentiates_correctly(loss: str, penalty: dict[str, Any]) -> None:
    X, Y = small(1)
    problem = Problem(with_bias(X), signs(Y[:, 0]), loss=loss, **penalty)
    w = np.random.default_rng(2).standard_normal(7)
    np.testing.assert_allclose(numeric(problem.value, w), problem.gradient(w), atol=1e-5)
    if loss != "huber_hinge" and problem.l1 == 0:  # else the curvature is that of a majoriser
        np.testing.assert_allclose(numeric(problem.gradient, w), problem.hessian(w), atol=1e-5)


def test_curvature_of_linear_parts_is_that_of_a_parabola_above() -> None:
    """Beyond its quadratic zone a Huber function lies below the parabola that touches it."""
    away = np.linspace(-4, 4, 81)
    for z in (-3.0, 0.0, 0.85):  # 1 - z is more than the width, 0.1
        problem = Problem(np.ones((1, 1)), np.ones(1), loss="huber_hinge")
        value, slope, curvature = problem.losses(np.array([z]))
        parabola = value + slope * (away - z) + curvature / 2 * (away - z) ** 2
        assert (problem.losses(away)[0] <= parabola + 1e-12).all()
    penalty = Problem(np.zeros((1, 1)), np.ones(1), 0.0, l2=0.0, l1=1.0)
    for w in (-3.0, 0.15, 2.0):
        at = np.array([w])
        for v in away:
            s = v - w
            parabola = (
                penalty.value(at) + penalty.gradient(at) @ [s] + penalty.hessian(at) * s**2 / 2
            )
            assert penalty.value(np.array([v])) <= parabola[0, 0] + 1e-12


@pytest.mark.parametrize("start", ["zero", "mean_separating", "negative_bias", "negative_mean"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_every_step_is_that_of_the_reference(loss: str, start: str) -> None:
    """Gradient, Hessian products, preconditioner, end of the inner iteration and line search."""
    X, Y = small(4, n=60)
    first = solve(X, Y, loss=loss, start=start, max_iter=0).weights
    for steps in (1, 2, 3):
        mine = solve(X, Y, loss=loss, start=start, max_iter=steps, tolerance=1e-9)
        assert mine.iterations == 3 * steps
        for label in range(3):
            problem = Problem(with_bias(X), signs(Y[:, label]), loss=loss)
            begin = first[label]
            if problem.value(begin) > problem.value(0 * begin):
                begin = 0 * begin  # no lane starts where it is worse off than at zero
            expected = newton(problem, begin, steps)
            np.testing.assert_allclose(mine.weights[label], expected, rtol=2e-3, atol=2e-4)


def test_starting_points() -> None:
    X, Y = small(5, n=50)
    rows = with_bias(X, 2.0)
    for start, expected in (
        ("zero", np.zeros(7)),
        ("negative_bias", np.append(np.zeros(6), -0.5)),
        ("negative_mean", -rows.mean(0)),
    ):
        weights = solve(X, Y, start=start, max_iter=0, bias=2.0).weights
        np.testing.assert_allclose(weights, np.tile(expected, (3, 1)), atol=1e-6)


@pytest.mark.parametrize("bias", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_mean_separating_start_separates_the_means(bias: float, seed: int) -> None:
    X, Y = small(seed, n_labels=20)  # more than one block
    weights, rows = solve(X, Y, max_iter=0, bias=bias).weights, with_bias(X, bias)
    for w, positive in zip(weights, Y.T, strict=True):
        np.testing.assert_allclose(w @ rows[positive].mean(0), 1, atol=1e-4)
        np.testing.assert_allclose(w @ rows[~positive].mean(0), -2, atol=1e-4)


def test_means_at_right_angles_are_separated_too() -> None:
    """The mean of all rows has no part along the positive one: u = 1/|s|^2, v = f/|m|^2."""
    X = np.array([[2.0, 1, 0, 0], [-2, -1, 0, 0], [0, 0, 3, 0], [0, 0, 0, 3]])
    Y = np.array([[True], [False], [False], [False]])
    w = solve(X, Y, max_iter=0, bias=0.0).weights[0, :4]
    s, m, f = X[0], X.mean(0), 1 / 4 - 2 * 3 / 4
    np.testing.assert_allclose(w, s / (s @ s) + f * m / (m @ m), atol=1e-6)


def test_without_two_different_means_it_starts_from_minus_the_mean() -> None:
    X, Y = small(6)
    Y[:, 0], Y[:, 1] = True, False
    weights = solve(X, Y, max_iter=0).weights
    np.testing.assert_allclose(weights[:2], -np.tile(with_bias(X).mean(0), (2, 1)), atol=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_optimum_is_that_of_another_method(loss: str, penalty: dict[str, Any]) -> None:
    X, Y = small(7)
    weights = solve(X, Y, loss=loss, tolerance=1e-5, **penalty).weights
    for label in range(3):
        problem = Problem(with_bias(X), signs(Y[:, label]), loss=loss, **penalty)
        best = optimum(problem)
        assert problem.value(weights[label]) <= problem.value(best) * (1 + 1e-5)
        np.testing.assert_allclose(weights[label], best, atol=0.01 * abs(best).max())


@pytest.mark.parametrize("regularize_bias", [True, False])
def test_soft_targets(regularize_bias: bool) -> None:
    X, Y = small(8)
    targets = np.where(
        Y, 1 - np.random.default_rng(0).random(Y.shape), 0
    )  # of the label, in (0, 1]
    weights = solve(
        X,
        np.where(targets > 0, 2 * targets - 1, 0),
        loss="logistic",
        tolerance=1e-5,
        regularize_bias=regularize_bias,
    ).weights
    for label in range(3):
        sign = 2 * targets[:, label] - 1
        problem = Problem(with_bias(X), sign, loss="logistic", regularize_bias=regularize_bias)
        np.testing.assert_allclose(weights[label], optimum(problem), atol=2e-3)


@pytest.mark.parametrize("start", ["zero", "mean_separating"])
def test_targets_beyond_one(start: str) -> None:
    """As corrections for missing labels make them: the objective falls below 0, and is convex."""
    X, Y = small(10)
    sign = np.where(Y, 9.0, 0)  # five times the label, minus four times its absence
    done = solve(X, sign, loss="logistic", tolerance=1e-5, start=start)
    assert done.unconverged == 0
    for label in range(3):
        problem = Problem(with_bias(X), np.where(Y[:, label], 9.0, -1), loss="logistic")
        best = optimum(problem)
        assert problem.value(best) < 0
        np.testing.assert_allclose(done.weights[label], best, atol=5e-3)


@pytest.mark.parametrize("loss", SMOOTH)
def test_it_ends_as_soon_as_the_gradient_is_small_and_not_before(loss: str) -> None:
    X, Y = small(9, n=80, n_labels=1)
    problem = Problem(with_bias(X), signs(Y[:, 0]), loss=loss)
    for start in ("zero", "mean_separating"):
        done = solve(X, Y, loss=loss, start=start, tolerance=0.01)
        assert done.unconverged == 0
        assert np.linalg.norm(problem.gradient(done.weights[0])) <= 1.001 * problem.tolerance(0.01)
        early = solve(X, Y, loss=loss, start=start, tolerance=0.01, max_iter=done.iterations - 1)
        assert early.unconverged == 1
        assert np.linalg.norm(problem.gradient(early.weights[0])) > 0.999 * problem.tolerance(0.01)


@pytest.mark.parametrize("loss", SMOOTH)
def test_all_starts_end_at_the_same_place(loss: str) -> None:
    X, Y = small(10)
    first = solve(X, Y, loss=loss, tolerance=1e-5, start="zero").weights
    for start in ("mean_separating", "negative_bias", "negative_mean"):
        again = solve(X, Y, loss=loss, tolerance=1e-5, start=start).weights
        np.testing.assert_allclose(again, first, atol=1e-3)


def test_dual_descent_and_liblinear_find_the_same_optimum() -> None:
    from sklearn.svm import LinearSVC

    X, Y = small(11, n=60)
    mine = solve(X, Y, tolerance=1e-6).weights
    dual = solve(X, Y, tolerance=1e-5, max_iter=100_000, dual=True).weights
    np.testing.assert_allclose(mine, dual, atol=1e-3)
    for label in range(3):
        y = signs(Y[:, label])
        peer = LinearSVC(
            loss="squared_hinge", dual=True, intercept_scaling=1, tol=1e-8, max_iter=500_000
        ).fit(X, y)
        w = np.append(peer.coef_[0], peer.intercept_)
        problem = Problem(with_bias(X), y)
        assert problem.value(mine[label]) == pytest.approx(problem.value(w), rel=1e-5)
        np.testing.assert_allclose(mine[label], w, atol=2e-3)


def test_logistic_regression_has_the_same_objective() -> None:
    from sklearn.linear_model import LogisticRegression

    X, Y = small(12, n=60)
    for regularize_bias in (True, False):
        rows = with_bias(X)
        mine = solve(X, Y, loss="logistic", tolerance=1e-6, regularize_bias=regularize_bias).weights
        for label in range(3):
            peer = LogisticRegression(
                fit_intercept=not regularize_bias, tol=1e-10, max_iter=10_000
            ).fit(rows if regularize_bias else X, Y[:, label])
            w = peer.coef_[0] if regularize_bias else np.append(peer.coef_[0], peer.intercept_)
            problem = Problem(
                rows, signs(Y[:, label]), loss="logistic", regularize_bias=regularize_bias
            )
            assert problem.value(mine[label]) == pytest.approx(problem.value(w), rel=1e-5)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 30),
    d=st.integers(1, 8),
    loss=st.sampled_from(SMOOTH),
    penalty=st.sampled_from(PENALTIES),
)
@settings(max_examples=60, deadline=None)
def test_the_gradient_vanishes(
    seed: int, n: int, d: int, loss: str, penalty: dict[str, Any]
) -> None:
    """Whatever the data (empty rows, one row, no positives, only positives) and the costs."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)).astype(np.float32)
    X = X.astype(np.float64)
    Y = rng.random((n, 2)) < rng.choice([0.0, 0.1, 0.5, 1.0])
    weight = (rng.random(n) * (rng.random(n) < 0.8)).astype(np.float32)
    solved = solve(X, Y, loss=loss, row_weight=weight, positive_cost=2.0, **penalty)
    for label in range(2):
        cost = weight * np.where(Y[:, label], 2.0, 1.0)
        problem = Problem(with_bias(X), signs(Y[:, label]), cost, loss=loss, **penalty)
        norm = np.linalg.norm(problem.gradient(solved.weights[label]))
        assert norm <= problem.tolerance(1e-4) + 1e-5 * (1 + n)
