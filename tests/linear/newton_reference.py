"""Newton's method for one label in NumPy, and a way into the native one, for its tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args
from longtail.linear.search.layer import Layer
from longtail.linear.train.solver_options import LOSSES, STARTS


@dataclass
class Solved:
    """Weights (L, d + 1) as they multiply rows with a last column of ``bias``, and a report."""

    weights: np.ndarray
    unconverged: int
    iterations: int


def solve(
    X: Any,
    Y: np.ndarray,
    *,
    loss: str = "squared_hinge",
    start: str = "mean_separating",
    dual: bool = False,
    tolerance: float = 1e-4,
    max_iter: int = 1000,
    bias: float = 1.0,
    positive_cost: float = 1.0,
    negative_cost: float = 1.0,
    row_weight: np.ndarray | None = None,
    n_threads: int = 1,
    **options: Any,
) -> Solved:
    """The native solver on all rows. ``Y`` (n, L): targets from -1 on, 0 stands for -1."""
    rows = sp.csr_matrix(X, dtype=np.float32)
    targets = sp.csc_matrix(Y.astype(np.float32))
    n, n_labels = targets.shape
    cost = np.full(targets.nnz, positive_cost, np.float32)
    if row_weight is not None:
        row_weight = row_weight.astype(np.float32)
        cost *= row_weight[targets.indices]
    level = core.Level(
        X=csr_args(rows),
        parent_ptr=np.array([0, n], np.int64),
        parent_rows=np.arange(n, dtype=np.int32),
        child_ptr=np.array([0, n_labels], np.int64),
        positive_ptr=targets.indptr.astype(np.int64),
        positive_rows=targets.indices.astype(np.int32),
        positive_sign=None if (targets.data == 1).all() else targets.data,
        positive_cost=cost,
        negative_cost=np.full(n_labels, negative_cost, np.float32),
        row_weight=row_weight,
    )
    params = core.LevelParams(
        loss=LOSSES[loss],
        dual=dual,
        tolerance=tolerance,
        max_iter=max_iter,
        bias=bias,
        start=STARTS[start],
        **{"threshold": 0.0, **options},
    )
    arrays, about = core.train_level(level, params, n_threads)
    weights = Layer(arrays).to_csr(rows.shape[1]).toarray().astype(np.float64)
    if bias:
        weights[:, -1] /= bias
    return Solved(weights, about["unconverged"], about["iterations"])


@dataclass
class Problem:
    """``min_w l2 / 2 |w|^2 + l1 sum huber(w) + sum_i cost_i loss(w.x_i, y_i)``, bias last."""

    rows: np.ndarray
    sign: np.ndarray
    cost: Any = 1.0
    loss: str = "squared_hinge"
    l2: float = 1.0
    l1: float = 0.0
    smoothing: float = 0.1
    regularize_bias: bool = True

    def _penalised(self, w: np.ndarray) -> np.ndarray:
        return w if self.regularize_bias else np.append(w[:-1], 0.0)

    def losses(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value, slope and curvature of every row's loss at the scores ``z``."""
        y, m, h = self.sign, 1 - self.sign * z, self.smoothing
        slack = np.maximum(m, 0)
        if self.loss == "squared_hinge":
            return slack**2, -2 * y * slack, 2.0 * (m > 0)
        if self.loss == "huber_hinge":
            value = np.where(slack < h, slack**2 / (2 * h), slack - h / 2)
            return value, -y * np.minimum(slack / h, 1), (m > 0) / np.maximum(m, h)
        p, q = (1 + y) / 2, 1 / (1 + np.exp(-z))
        return p * np.logaddexp(0, -z) + (1 - p) * np.logaddexp(0, z), q - p, q * (1 - q)

    def value(self, w: np.ndarray) -> float:
        v, h = self._penalised(w), self.smoothing
        huber = np.where(abs(v) < h, v**2 / (2 * h), abs(v) - h / 2)
        loss = self.losses(self.rows @ w)[0]
        return float(self.l2 / 2 * v @ v + self.l1 * huber.sum() + (self.cost * loss).sum())

    def curvature(self, w: np.ndarray) -> np.ndarray:
        """Diagonal of the penalty's part of the Hessian."""
        out = self.l2 + self.l1 / np.maximum(abs(w), self.smoothing)
        return out if self.regularize_bias else np.append(out[:-1], 0.0)

    def gradient(self, w: np.ndarray) -> np.ndarray:
        out: np.ndarray = self.curvature(w) * w + self.rows.T @ (
            self.cost * self.losses(self.rows @ w)[1]
        )
        return out

    def hessian(self, w: np.ndarray) -> np.ndarray:
        weighted = (self.cost * self.losses(self.rows @ w)[2])[:, None] * self.rows
        out: np.ndarray = np.diag(self.curvature(w)) + self.rows.T @ weighted
        return out

    def tolerance(self, tolerance: float) -> float:
        """Norm that the gradient must reach."""
        n, positives = len(self.rows), int((self.sign > 0).sum())
        share = max(1, min(positives, n - positives)) / n
        return float(
            tolerance * share * np.linalg.norm(self.gradient(np.zeros(self.rows.shape[1])))
        )


def conjugate_gradients(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    M = 0.99 + 0.01 * np.diag(hessian)
    s, r = np.zeros_like(gradient), -gradient
    z = r / M
    d, zr, model = z, float(r @ z), 0.0
    tolerance = min(0.5, np.sqrt(np.sqrt(zr)))
    for k in range(1, max(len(gradient), 5) + 1):
        product = hessian @ d
        alpha = zr / (d @ product)
        s, r = s + alpha * d, r - alpha * product
        before, model = model, float(gradient @ s + s @ hessian @ s / 2)
        if k * (model - before) >= tolerance * model:
            break
        z = r / M
        zr, before_zr = float(r @ z), zr
        d = z + zr / before_zr * d
    return s


def newton(problem: Problem, w: np.ndarray, steps: int) -> np.ndarray:
    """So many Newton steps from ``w``, with backtracking."""
    for _ in range(steps):
        gradient = problem.gradient(w)
        step = conjugate_gradients(problem.hessian(w), gradient)
        t, value = 1.0, problem.value(w)
        while problem.value(w + t * step) > value + 0.01 * t * gradient @ step:
            t /= 2
        w = w + t * step
    return w


def optimum(problem: Problem) -> np.ndarray:
    """The minimum by a method of its own: BFGS in double precision."""
    from scipy.optimize import minimize

    start = np.zeros(problem.rows.shape[1])
    options = {"gtol": 1e-9, "maxiter": 10_000}
    found = minimize(problem.value, start, jac=problem.gradient, method="BFGS", options=options)
    return np.asarray(found.x)


def with_bias(X: Any, bias: float = 1.0) -> np.ndarray:
    dense = X.toarray() if sp.issparse(X) else X
    return np.hstack([dense, np.full((dense.shape[0], 1), bias)]).astype(np.float64)


def numeric(function: Callable[[np.ndarray], Any], w: np.ndarray) -> np.ndarray:
    """Central differences of ``function`` in every coordinate of ``w``."""
    width = 1e-6
    steps = np.eye(len(w)) * width
    return np.array([(function(w + e) - function(w - e)) / (2 * width) for e in steps])
