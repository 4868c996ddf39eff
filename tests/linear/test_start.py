"""Training that begins with given weights is pulled to them instead of to zero."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows
from scipy.optimize import minimize

from longtail.linear.level import LevelProblem, all_rows, train_level
from longtail.solvers import SolverOptions

TIGHT = SolverOptions(tolerance=1e-5, max_iter=20_000, threshold=0.0)


def problem(Y: sp.csr_matrix, start: np.ndarray | None) -> LevelProblem:
    given = None
    if start is not None:
        given = sp.csr_matrix(start[:, :-1].astype(np.float32)), start[:, -1]
    columns = Y.tocsc()
    columns.sort_indices()
    return LevelProblem(all_rows(Y.shape[0]), np.array([0, Y.shape[1]]), columns, start=given)


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
