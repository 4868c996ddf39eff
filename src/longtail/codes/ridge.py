"""``Ridge``: linear regression on many targets at once, from sparse features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import n_threads
from longtail._products import times_dense
from longtail._progress import Progress
from longtail._validation import as_features, as_k
from longtail.base import Estimator
from longtail.features.unit_length import unit_rows

__all__ = ["Ridge"]

_CACHED = 1 << 15  # numbers of each matrix that are worked on at a time


class Ridge(Estimator):
    """``min_W |X W - T|_F^2 + l2 |W|_F^2`` for targets T (n, c), by conjugate gradients.

    All c columns advance together, each with its own step length, through two products with X per
    iteration; X stays sparse and its Gram matrix is never formed. A constant feature 1 is appended,
    its weight regularised like the others.

    Parameters
    ----------
    l2 : float
        Weight of the penalty.
    tolerance, max_iter : float; int
        Stop when every column's residual is below this share of its right-hand side, or after so
        many iterations.
    normalize : bool
        Scale rows to unit length, before the constant is appended.
    n_jobs : int or None
        Threads; the result does not depend on them.

    After ``fit``: ``coef_`` (d, c) float32, ``intercept_`` (c,).

    >>> model = Ridge(l2=1e-6, normalize=False).fit([[0.0], [1.0], [2.0]], [[1.0], [3.0], [5.0]])
    >>> model.predict([[3.0]]).round(3)
    array([[7.]], dtype=float32)
    """

    type_tag = "ridge"

    coef_: np.ndarray
    intercept_: np.ndarray

    def __init__(
        self,
        *,
        l2: float = 1.0,
        tolerance: float = 1e-5,
        max_iter: int = 200,
        normalize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.l2 = l2
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.normalize = normalize
        self.n_jobs = n_jobs

    def fit(self, X: Any, T: Any) -> Ridge:
        """Learn to predict ``T`` (n, c) from ``X`` (n, d).

        Parameters
        ----------
        X : matrix of shape (n, d)
            Features.
        T : matrix of shape (n, c)
            Targets.
        """
        X, threads = as_features(X), n_threads(self.n_jobs)
        T = np.ascontiguousarray(T, dtype=np.float32)
        if T.ndim != 2 or len(T) != X.shape[0]:
            raise ValueError(f"targets must have the shape ({X.shape[0]}, c), got {T.shape}")
        if not np.isfinite(T).all():
            raise ValueError("targets must be finite")
        if not 0 < self.l2 < np.inf:
            raise ValueError(f"l2 must be positive and finite, got {self.l2}")
        if not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance must lie between 0 and 1, got {self.tolerance}")
        A = _with_constant(unit_rows(X, threads) if self.normalize else X)
        weights = self._solve(A, T, threads)
        self.coef_ = np.ascontiguousarray(weights[:-1])
        self.intercept_ = np.ascontiguousarray(weights[-1])
        return self

    def _solve(self, A: sp.csr_matrix, T: np.ndarray, threads: int) -> np.ndarray:
        At = A.T.tocsr()
        At.sort_indices()
        squares = np.asarray(A.multiply(A).sum(axis=0), dtype=np.float32).ravel()
        preconditioner = (1 / (squares + np.float32(self.l2)))[:, None]
        residual = times_dense(At, T, threads)
        direction, W = preconditioner * residual, np.zeros_like(residual)
        size, left = _dots(residual, direction), _dots(residual, residual)
        stop = (self.tolerance**2) * left
        # A few rows at a time, so that they are in the cache for all that is done with them.
        rows = max(1, _CACHED // max(1, W.shape[1]))
        parts = [slice(begin, begin + rows) for begin in range(0, len(W), rows)]
        with Progress("Ridge") as progress:
            for i in range(as_k(self.max_iter, "max_iter")):
                progress(i, int(self.max_iter))
                if (left <= stop).all():
                    break
                image = times_dense(At, times_dense(A, direction, threads), threads)
                curvature = np.zeros_like(size)
                for part in parts:
                    image[part] += np.float32(self.l2) * direction[part]
                    curvature += _dots(direction[part], image[part])
                alpha, before = _ratio(size, curvature), size
                size, left = np.zeros_like(size), np.zeros_like(size)
                for part in parts:
                    W[part] += alpha * direction[part]
                    residual[part] -= alpha * image[part]
                    size += _dots(residual[part], preconditioner[part] * residual[part])
                    left += _dots(residual[part], residual[part])
                beta = _ratio(size, before)
                for part in parts:
                    direction[part] *= beta
                    direction[part] += preconditioner[part] * residual[part]
        return W

    def predict(self, X: Any) -> np.ndarray:
        """Return ``X W + b``, (n, c) float32.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        """
        self._check_fitted()
        X, threads = as_features(X, n_features=len(self.coef_)), n_threads(self.n_jobs)
        X = unit_rows(X, threads) if self.normalize else X
        return times_dense(X, self.coef_, threads, bias=self.intercept_)

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.arrays.update(coef=self.coef_, intercept=self.intercept_)
        return state

    def _set_state(self, state: persist.State) -> None:
        self.coef_ = state.array("coef", np.float32, (None, None))
        self.intercept_ = state.array("intercept", np.float32, (self.coef_.shape[1],))


def _with_constant(X: Any) -> sp.csr_matrix:
    ones = sp.csr_matrix(np.ones((X.shape[0], 1), np.float32))
    out = sp.hstack([sp.csr_matrix(X), ones], format="csr", dtype=np.float32)
    out.sort_indices()
    return out


def _dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return column-wise inner products, summed in double precision."""
    return np.einsum("ij,ij->j", a, b, dtype=np.float64)  # type: ignore[no-any-return]


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a / b, and 0 where a column has converged."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0).astype(np.float32)  # type: ignore[no-any-return]
