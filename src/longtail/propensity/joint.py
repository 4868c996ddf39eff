"""``JointPropensity``: propensities learned together with a logistic model of the labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from longtail._renamed import keyword_only
from longtail._validation import as_features, as_k, as_labels
from longtail.propensity.base import Propensity, PropensityWarning

__all__ = ["JointPropensity"]

_THETA_BOUNDS = (-13.8, 30.0)  # p between a millionth and 1 - 1e-13: inverses stay finite


class JointPropensity(Propensity):
    """Learns ``p_j`` and a logistic model at once, from observed labels only.

    A label is observed if it is relevant and was not overlooked::

        P(observed_j = 1 | x) = p_j sigma(w_j . x + b_j),      p_j = sigma(theta_j)

    For each label the observed-data likelihood is maximised over (w_j, b_j, theta_j) by L-BFGS,
    with penalties ``l2 / 2 ||w_j||^2`` and ``prior_strength / 2 (theta_j - logit(prior))^2``. The
    bias is not penalised.

    p_j can be told apart from sigma only if some rows are certainly relevant (sigma near 1): there,
    the share observed *is* p_j. Without such rows only the product is determined and p_j stays near
    ``prior``. That is what the penalty on theta is for; a label without an observed positive says
    nothing and gets exactly ``prior``, with a ``PropensityWarning``. Labels are assumed to go
    missing independently of x. With many features and few rows the logistic model can explain the
    missing labels too, and p_j comes out too high: raise ``l2`` then.

    Parameters: ``l2`` on w, not negative; ``prior`` in (0, 1); ``prior_strength`` > 0; ``max_iter``
    and ``tol`` of L-BFGS (per label; labels that do not converge are counted in a warning).

    After ``fit``: ``propensity_`` (L,), ``n_iter_`` (L,) int32. Cost: L separate problems, each
    iteration two passes over X; meant for up to some thousand labels.

    Parameters
    ----------
    l2 : float, default=1.0
        Strength of the penalty on weights.
    prior : float, default=0.5
        Where propensities lean to.
    prior_strength : float, default=1.0
        How strongly.
    max_iter : int, default=500
        Most iterations of L-BFGS per label.
    tol : float, default=1e-06
        Where L-BFGS stops.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2)); relevant = X[:, :1] * 6 > rng.logistic(size=(4000, 1))
    >>> observed = relevant & (rng.random((4000, 1)) < 0.3)
    >>> JointPropensity().fit(observed, X=X).propensity_.round(1)
    array([0.3])

    Teisseyre, Mielniczuk, Łazęcka: Different Strategies of Fitting Logistic Regression for Positive
    and Unlabelled Data, ICCS 2020 (joint method); applied label by label by Schultheis et al., KDD
    2022.
    """

    type_tag = "joint-propensity"

    n_iter_: np.ndarray

    def __init__(
        self,
        *,
        l2: float = 1.0,
        prior: float = 0.5,
        prior_strength: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-6,
    ) -> None:
        self.l2 = l2
        self.prior = prior
        self.prior_strength = prior_strength
        self.max_iter = max_iter
        self.tol = tol

    @keyword_only("X", "Y")
    def fit(self, Y: Any, *, X: Any) -> JointPropensity:
        """Learn from observed labels ``Y`` (n, L) and features ``X`` (n, d), sparse or dense.

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        X : matrix of shape (n, d)
            Features.
        """
        if not 0.0 < self.prior < 1.0:
            raise ValueError(f"prior must lie between 0 and 1, got {self.prior!r}")
        if not (self.l2 >= 0.0 and self.prior_strength > 0.0):
            raise ValueError(
                f"l2 must not be negative and prior_strength must be positive, "
                f"got {self.l2!r} and {self.prior_strength!r}"
            )
        max_iter = as_k(self.max_iter, "max_iter")
        X = as_features(X)
        Y = as_labels(Y, n_rows=X.shape[0])
        if X.shape[0] == 0 or Y.shape[1] == 0:
            raise ValueError(
                f"{X.shape[0]} rows and {Y.shape[1]} labels: at least one of each is needed"
            )
        X = X.astype(np.float64)  # once, not at every product with the weights
        columns = Y.tocsc()
        n_labels = Y.shape[1]
        p = np.full(n_labels, float(self.prior))
        self.n_iter_ = np.zeros(n_labels, np.int32)
        silent, failed = 0, 0
        for j in range(n_labels):
            rows = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
            if not len(rows):
                silent += 1
                continue
            y = np.zeros(X.shape[0])
            y[rows] = columns.data[columns.indptr[j] : columns.indptr[j + 1]]
            p[j], self.n_iter_[j], converged = self._fit_label(X, y)
            failed += not converged
        self._store(p)
        if silent:
            _warn(f"{silent} label(s) have no observed positive and take the prior, {self.prior:g}")
        if failed:
            _warn(
                f"{failed} label(s) did not converge in {max_iter} iterations: raise max_iter or l2"
            )
        return self

    def _fit_label(self, X: Any, y: np.ndarray) -> tuple[float, int, bool]:
        from scipy.optimize import minimize  # a quarter of a second to import
        from scipy.special import expit, logit

        start = np.zeros(X.shape[1] + 2)
        start[-1] = logit(self.prior)
        # The best constant under the prior; the rate is kept off 1, where that constant is
        # infinite.
        start[-2] = logit(min(y.mean() / self.prior, 0.9))
        result = minimize(
            observed_loss,
            start,
            args=(X, y, self.l2, self.prior_strength, float(logit(self.prior))),
            jac=True,
            method="L-BFGS-B",
            bounds=[(None, None)] * (X.shape[1] + 1) + [_THETA_BOUNDS],
            options={"maxiter": self.max_iter, "gtol": self.tol * len(y), "ftol": 1e-12},
        )
        return float(expit(result.x[-1])), int(result.nit), bool(result.success)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"n_iter_": self.n_iter_}


def observed_loss(
    v: np.ndarray, X: Any, y: np.ndarray, l2: float, strength: float, centre: float
) -> tuple[float, np.ndarray]:
    """Return the penalised negative log-likelihood of observed labels, and its gradient, at [w, b,
    theta].

    With z = w.x + b, q = sigma(theta) sigma(z): ``-sum y log q + (1 - y) log(1 - q)``, all in
    logarithms. Identities: ``1 - q = (e^-theta + e^-z + e^(-theta-z)) sigma(theta) sigma(z)`` and
    ``dq/dz = q sigma(-z)``; since 1 - q >= sigma(-z), the ratio ``q sigma(-z) / (1 - q)`` is at
    most 1 and never overflows.
    """
    from scipy.special import log_expit

    w, bias, theta = v[:-2], v[-2], v[-1]
    z = np.asarray(X @ w).ravel() + bias
    log_p, log_s = log_expit(theta), log_expit(z)
    log_q = log_p + log_s
    log_not = np.logaddexp(np.logaddexp(-theta, -z), -theta - z) + log_q
    loss = -(y @ log_q + (1.0 - y) @ log_not)
    loss += 0.5 * l2 * (w @ w) + 0.5 * strength * (theta - centre) ** 2

    log_not_s, log_not_p = log_expit(-z), log_expit(-theta)
    pull = (1.0 - y) * np.exp(log_q + log_not_s - log_not) - y * np.exp(log_not_s)
    pull_theta = (1.0 - y) * np.exp(log_q + log_not_p - log_not) - y * np.exp(log_not_p)
    gradient = np.empty_like(v)
    gradient[:-2] = X.T @ pull + l2 * w
    gradient[-2] = pull.sum()
    gradient[-1] = pull_theta.sum() + strength * (theta - centre)
    return float(loss), gradient


def _warn(message: str) -> None:
    warnings.warn(f"joint propensities: {message}", PropensityWarning, stacklevel=3)
