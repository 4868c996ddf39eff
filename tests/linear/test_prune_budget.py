"""Pruning by a budget: as many weights go as the objective allows."""

from __future__ import annotations

import numpy as np
import pytest
from newton_reference import Problem, solve, with_bias
from test_newton_blocks import rare_labels

LOSSES = ["squared_hinge", "logistic", "huber_hinge", "hinge"]


def value(rows: np.ndarray, positive: np.ndarray, w: np.ndarray, loss: str) -> float:
    sign = np.where(positive, 1.0, -1.0)
    if loss == "hinge":
        return float(w @ w / 2 + np.maximum(0, 1 - sign * (rows @ w)).sum())
    return Problem(rows, sign, loss=loss).value(w)


@pytest.mark.parametrize("budget", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_rises_by_the_budget_and_no_more(loss: str, budget: float) -> None:
    X, Y = rare_labels(n=500, n_labels=18)
    rows, dual = with_bias(X), loss == "hinge"
    full = solve(X, Y, loss=loss, dual=dual, tolerance=0.01).weights
    kept = solve(X, Y, loss=loss, dual=dual, tolerance=0.01, prune_budget=budget).weights
    for w, pruned, positive in zip(full, kept, Y.T, strict=True):
        assert ((pruned == 0) | (pruned == w)).all()
        assert abs(w[pruned == 0]).max() <= abs(pruned[pruned != 0]).min()
        limit = (1 + budget) * value(rows, positive, w, loss)
        assert value(rows, positive, pruned, loss) <= limit * (1 + 1e-5)
        # Bisection ends where at most a tenth more would be too much.
        order, n_kept = np.argsort(abs(pruned)), int((pruned != 0).sum())
        further, values = pruned.copy(), []
        for more in order[len(order) - n_kept :][: max(1, n_kept // 10)]:
            further[more] = 0
            values.append(value(rows, positive, further, loss))
        assert max(values) > limit * (1 - 1e-5)


def test_extreme_budgets() -> None:
    X, Y = rare_labels(n=300, n_labels=3)
    full = solve(X, Y, tolerance=0.01).weights
    nothing = solve(X, Y, tolerance=0.01, prune_budget=1e5).weights
    assert (nothing == 0).all()
    exact = solve(X, Y, tolerance=0.01, prune_budget=0.0).weights
    assert ((exact == 0) | (exact == full)).all()
    rows = with_bias(X)
    for w, pruned, positive in zip(full, exact, Y.T, strict=True):
        before = value(rows, positive, w, "squared_hinge")
        assert value(rows, positive, pruned, "squared_hinge") <= before * (1 + 1e-5)
