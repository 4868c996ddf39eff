"""Newton's method on many labels and many rows: blocks, sleeping rows, instruction sets, edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from newton_reference import Problem, solve, with_bias

from longtail._native import core
from longtail.linear.train.solver_options import SolverOptions

SMOOTH = ["squared_hinge", "logistic", "huber_hinge"]


def rare_labels(n: int = 3000, d: int = 400, n_labels: int = 20) -> tuple[Any, np.ndarray]:
    """Sparse unit rows, and labels with one to six positives that share features."""
    rng = np.random.default_rng(0)
    columns = np.minimum(rng.zipf(1.3, (n, 12)) - 1, d - 1)
    Y = np.zeros((n, n_labels), bool)
    for label in range(n_labels):
        rows = rng.choice(n, 1 + label % 6, replace=False)
        Y[rows, label] = True
        columns[rows, :4] = rng.choice(d, 4)
    X = sp.csr_matrix((rng.random(12 * n), (np.repeat(np.arange(n), 12), columns.ravel())), (n, d))
    X = X.multiply(1 / np.sqrt(X.multiply(X).sum(1))).tocsr().astype(np.float32)
    X.sum_duplicates()
    return X, Y


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("tolerance", [0.01, 1e-4])
def test_rare_labels_reach_their_tolerance(loss: str, tolerance: float) -> None:
    """Rows fall asleep and features leave here; the gradient over all of them must still vanish."""
    X, Y = rare_labels()
    solved = solve(X, Y, loss=loss, tolerance=tolerance)
    assert solved.unconverged == 0
    rows = with_bias(X)
    for label, w in enumerate(solved.weights):
        problem = Problem(rows, np.where(Y[:, label], 1.0, -1.0), loss=loss)
        limit = problem.tolerance(tolerance) + 1e-4
        assert np.linalg.norm(problem.gradient(w)) <= 1.01 * limit


@pytest.mark.parametrize("penalty", [{}, {"l2": 0.3}, {"l2": 0.0, "l1": 1.0}])
def test_features_that_no_active_row_has_get_no_weight(penalty: dict[str, Any]) -> None:
    """The start gives every feature a weight; Newton takes away what no row needs."""
    X, Y = rare_labels(n=600, n_labels=3)
    weight = np.append(np.ones(600), np.zeros(50))  # the last rows count in the mean only
    X = sp.block_diag([X, sp.eye(50, dtype=np.float32)]).tocsr()
    Y = np.vstack([Y, np.zeros((50, 3), bool)])
    first = solve(X, Y, row_weight=weight, max_iter=0).weights
    assert (abs(first[:, 400:450]) > 1e-4).all()
    solved = solve(X, Y, row_weight=weight, tolerance=1e-5, **penalty)
    assert solved.unconverged == 0
    assert abs(solved.weights[:, 400:450]).max() < 1e-6


@pytest.fixture
def isa() -> Iterator[None]:
    before = core.active_isa()
    yield
    core.set_isa(before)


@pytest.mark.parametrize("loss", SMOOTH)
def test_instruction_sets_agree(loss: str, isa: None) -> None:
    names = ["portable", "avx2", "avx512"]
    available = names[: names.index(core.best_isa()) + 1]
    if len(available) == 1:
        pytest.skip("this machine has one instruction set only")
    X, Y = rare_labels(n=600)
    answers = []
    for name in available:
        core.set_isa(name)
        answers.append(solve(X, Y, loss=loss, l1=0.1, tolerance=1e-5).weights)
    for other in answers[1:]:
        np.testing.assert_allclose(other, answers[0], atol=1e-3)


@pytest.mark.parametrize("loss", SMOOTH)
def test_threads_change_nothing(loss: str) -> None:
    X, Y = rare_labels(n=600, n_labels=40)
    one = solve(X, Y, loss=loss, tolerance=0.01, prune_budget=0.01)
    three = solve(X, Y, loss=loss, tolerance=0.01, prune_budget=0.01, n_threads=3)
    assert (one.weights == three.weights).all()
    assert one.iterations == three.iterations


def test_a_label_does_not_depend_on_its_block() -> None:
    X, Y = rare_labels(n=600)
    together = solve(X, Y, tolerance=1e-5).weights
    for label in (0, 7, 15, 16):
        alone = solve(X, Y[:, [label]], tolerance=1e-5).weights
        np.testing.assert_allclose(alone[0], together[label], atol=1e-3)


@pytest.mark.parametrize("loss", SMOOTH)
def test_a_row_of_weight_two_is_a_row_twice(loss: str) -> None:
    X, Y = rare_labels(n=300, n_labels=6)
    picked = [2, 5, 11, *np.flatnonzero(Y.any(1))]
    weight = np.ones(300)
    weight[picked] = 2
    twice = np.r_[np.arange(300), np.unique(picked)]
    weighted = solve(X, Y, loss=loss, tolerance=1e-5, row_weight=weight).weights
    again = solve(X[twice], Y[twice], loss=loss, tolerance=1e-5).weights
    np.testing.assert_allclose(weighted, again, atol=1e-3)
    assert abs(weighted - solve(X, Y, loss=loss, tolerance=1e-5).weights).max() > 0.01


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_degenerate_problems(loss: str, bias: float) -> None:
    for X, Y in (
        (np.zeros((5, 3)), np.eye(5, 2) > 0),  # no features
        (np.eye(4, 3), np.zeros((4, 2), bool)),  # no positives; an empty row
        (np.eye(4, 3), np.ones((4, 2), bool)),  # no negatives
        (np.ones((1, 3)), np.array([[True, False]])),  # one row
        (np.ones((6, 2)), np.arange(6)[:, None] % 2 == [0, 1]),  # nothing to tell rows by
    ):
        solved = solve(X, Y, loss=loss, bias=bias, tolerance=1e-3)
        assert solved.unconverged == 0
        for label, w in enumerate(solved.weights):
            if not bias:
                w = w[:-1]
            rows = with_bias(X, bias) if bias else X
            problem = Problem(rows, np.where(Y[:, label], 1.0, -1.0), loss=loss)
            assert np.linalg.norm(problem.gradient(w)) <= problem.tolerance(1e-3) + 1e-5


def test_costs_beyond_single_precision_are_not_called_solved() -> None:
    solved = solve(np.eye(3), np.eye(3) > 0, positive_cost=1e30, negative_cost=1e30)
    assert solved.unconverged == 3
    assert np.isfinite(solved.weights).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "Newton needs a smooth loss"),
        ({"l2": -1.0}, "cannot be negative"),
        ({"l2": 0.0}, "one of them must be positive"),
        ({"l1": np.nan}, "cannot be negative"),
        ({"smoothing": 0.0}, "smoothing must be positive"),
        ({"prune_budget": -0.1}, "prune_budget must be"),
        ({"tolerance": -1.0}, "tolerance cannot be negative"),
        ({"dual": True, "loss": "logistic"}, "squared hinge and the hinge only"),
        ({"dual": True, "l1": 1.0}, "l2 = 1 and l1 = 0"),
        ({"dual": True, "regularize_bias": False}, "always regularises the bias"),
    ],
)
def test_the_core_refuses_what_it_cannot_do(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(np.eye(3), np.eye(3) > 0, **options)


def test_soft_targets_need_the_logistic_loss() -> None:
    with pytest.raises(ValueError, match="soft targets need the logistic loss"):
        solve(np.eye(3), np.eye(3) * 0.5)
    with pytest.raises(ValueError, match="soft targets need the logistic loss"):
        solve(np.eye(3), np.eye(3) * 1.5)
    for target in (-1.5, np.inf, np.nan):
        with pytest.raises(ValueError, match="finite and at least -1"):
            solve(np.eye(3), np.where(np.eye(3) > 0, target, 0), loss="logistic")


@pytest.mark.parametrize(
    ("options", "solver"),
    [
        ({}, "dual"),
        ({"loss": "hinge"}, "dual"),
        ({"loss": "logistic"}, "newton"),
        ({"loss": "huber_hinge"}, "newton"),
        ({"l1": 0.1}, "newton"),
        ({"regularize_bias": False}, "newton"),
        ({"solver": "newton"}, "newton"),
    ],
)
def test_the_faster_solver_that_can(options: dict[str, Any], solver: str) -> None:
    assert SolverOptions(**options).chosen_solver == solver
    assert SolverOptions(**options).native()["dual"] == (solver == "dual")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "logistic", "solver": "dual"}, "use solver='newton'"),
        ({"loss": "hinge", "solver": "newton"}, "use loss='huber_hinge'"),
        ({"loss": "hinge", "l1": 1.0}, "use loss='huber_hinge'"),
        ({"l2": 0.0}, "without a penalty"),
        ({"smoothing": -1.0}, "smoothing must be positive"),
        ({"prune_budget": np.nan}, "prune_budget must be finite"),
        ({"start": "random"}, "start must be one of zero"),
    ],
)
def test_options_that_do_not_fit_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SolverOptions(**options)
