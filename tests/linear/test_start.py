"""Training that begins with given weights is pulled to them instead of to zero."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows
from scipy.optimize import minimize

from longtail.linear.train.level import LevelProblem, all_rows, train_level
from longtail.linear.train.solver_options import SolverOptions

TIGHT = SolverOptions(tolerance=1e-5, max_iter=20_000, threshold=0.0)


def problem(Y: sp.csr_matrix, start: np.ndarray | None) -> LevelProblem:
    given = None
    if start is not None:
        given = sp.csr_matrix(start[:, :-1].astype(np.float32)), start[:, -1]
    ends = np.array([0, Y.shape[1]])
    return LevelProblem(all_rows(Y.shape[0]), ends, columns(Y), start=given)


def columns(Y: sp.csr_matrix) -> sp.csc_matrix:
    out = Y.tocsc()
    out.sort_indices()
    return out


def test_differences_minimise_the_problem_around_the_start() -> None:
    X, Y = make_rows(n=60, d=10, n_labels=3)
    rows = np.hstack([X.toarray(), np.ones((60, 1))])
    start = np.random.default_rng(0).normal(size=(3, 11)) * 0.5
    layer = train_level(X, problem(Y, start), TIGHT, seed=0, n_threads=1)
    found = layer.to_csr(10).toarray()
    for label in range(3):
        sign = 2 * Y[:, [label]].toarray().ravel() - 1

        def value(w: np.ndarray, begin: np.ndarray = start[label], s: np.ndarray = sign) -> float:
            margin = np.maximum(0, 1 - s * (rows @ w))
            return float(0.5 * ((w - begin) ** 2).sum() + (margin**2).sum())

        best = minimize(value, start[label], method="BFGS", options={"gtol": 1e-8}).x
        np.testing.assert_allclose(found[label], best - start[label], atol=2e-3)
    assert abs(found).max() > 0.05


def test_a_start_at_zero_is_none_at_all() -> None:
    X, Y = make_rows()
    plain, zero = (
        train_level(X, problem(Y, start), TIGHT, seed=3, n_threads=2).to_csr(30).toarray()
        for start in (None, np.zeros((24, 31)))
    )
    np.testing.assert_array_equal(plain, zero)


def test_newton_refuses_a_start() -> None:
    X, Y = make_rows()
    options = SolverOptions(loss="logistic")
    with pytest.raises(ValueError, match="dual solver"):
        train_level(X, problem(Y, np.zeros((24, 31))), options, seed=0, n_threads=1)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_training_goes_on_where_it_ended(loss: str) -> None:
    """Rows that the start was trained on are not counted twice; those that turned positive turn."""
    X, Y = make_rows()
    options = SolverOptions(loss=loss, tolerance=1e-5, max_iter=20_000, threshold=0.0)

    def solve(Y: sp.csr_matrix, **more: Any) -> np.ndarray:
        problem = LevelProblem(all_rows(Y.shape[0]), np.array([0, 24]), columns(Y), **more)
        out: np.ndarray = train_level(X, problem, options, seed=0, n_threads=1).to_csr(30).toarray()
        return out

    before = Y.copy()
    before.data[np.random.default_rng(0).random(Y.nnz) < 0.2] = 0  # some labels come later
    known_positive = columns(before + 1e-9 * Y).data > 0.5  # type: ignore[operator]
    before.eliminate_zeros()
    first, second = solve(before), solve(Y)
    start = sp.csr_matrix(first[:, :-1]), first[:, -1]
    every = np.ones(Y.shape[0], bool)
    same = solve(before, start=start, known=(every, np.ones(before.nnz, bool)))
    limit = 1e-3 if loss == "squared_hinge" else 0.5  # a margin of 1 does not tell the variable
    assert abs(same).max() < limit
    moved = solve(Y, start=start, known=(every, known_positive))
    assert abs(second - first).max() > 0.5
    if loss == "squared_hinge":
        np.testing.assert_allclose(first + moved, second, atol=5e-3)


def test_what_is_known_must_fit() -> None:
    X, Y = make_rows()
    given = problem(Y, np.zeros((24, 31)))
    for known in ((np.ones(3, bool), np.ones(Y.nnz, bool)), (np.ones(200, bool), np.ones(1, bool))):
        with pytest.raises(ValueError, match="known or not"):
            train_level(X, replace(given, known=known), TIGHT, seed=0, n_threads=1)
