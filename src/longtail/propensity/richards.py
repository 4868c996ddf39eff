"""``RichardsPropensity``: a smooth curve in label frequency through direct estimates."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from longtail._renamed import keyword_only
from longtail.propensity.base import Propensity, PropensityWarning, label_counts

__all__ = ["RichardsPropensity"]

_LOWEST = 1e-6  # for the lower asymptote: inverses stay below a million

# Internal parameters, with t scaled to [0, 1]: A; the share of (1 - A) that K - A takes; steepness
# B; the place log Q / B of the rise; log nu. In these, all constraints are boxes.
_LOWER = np.array([_LOWEST, 0.0, 0.0, -1.0, -4.0])
_UPPER = np.array([1.0, 1.0, 200.0, 2.0, 4.0])
_STARTS = [(3.0, 0.3), (6.0, 0.5), (12.0, 0.2), (12.0, 0.7), (40.0, 0.5)]  # steepness, place


class RichardsPropensity(Propensity):
    """Richards' generalised logistic curve, fitted by least squares to direct estimates.

    ::

        p(t) = A + (K - A) / (1 + Q e^(-B t))^(1/nu),      t = log(1 + n_j)  or  t = n_j

    under 0 < A <= K <= 1, B >= 0, Q > 0 and nu > 0, so that p lies in (0, 1] and never falls with
    the label frequency. The paper leaves the parametrisation open; this is the common one, A and K
    being the asymptotes, B the steepness, Q the place and nu the skew of the rise.

    Parameter ``scale``: ``"log"`` (default) or ``"count"``, what t is.

    After ``fit``: ``propensity_`` (L,), ``coef_`` = [A, K, log Q, B, nu], ``rmse_`` of the fit over
    labels with an estimate.

    Parameters
    ----------
    scale : {"log", "count"}, default="log"
        What t is.

    >>> import numpy as np
    >>> n_j = np.arange(1, 60)
    >>> Y = (np.arange(100)[:, None] < n_j).astype(float)
    >>> known = 0.2 + 0.7 / (1 + np.exp(-2.0 * (np.log(1 + n_j) - 2.0)))
    >>> curve = RichardsPropensity().fit(Y, propensity=known)
    >>> bool(np.abs(curve.propensity_ - known).max() < 1e-3)
    True

    Richards: A Flexible Growth Function for Empirical Use, 1959; used for propensities by
    Schultheis et al., KDD 2022. Prefer ``DirectPropensity`` where every label has many queried
    positives: labels of the same frequency differ much.
    """

    type_tag = "richards-propensity"

    coef_: np.ndarray
    rmse_: float

    def __init__(self, *, scale: str = "log") -> None:
        self.scale = scale

    @keyword_only("Y", "propensity")
    def fit(self, Y: Any, *, propensity: Any) -> RichardsPropensity:
        """Learn the curve from propensities of some labels and how often each was observed.

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            The observed labels.
        propensity : DirectPropensity, or array of shape (L,)
            Propensities to fit the curve to; NaN is not known.
        """
        if self.scale not in ("log", "count"):
            raise ValueError(f"scale must be 'log' or 'count', got {self.scale!r}")
        _, counts = label_counts(Y)
        target = np.asarray(getattr(propensity, "ratio_", propensity), dtype=np.float64)
        if target.shape != counts.shape:
            raise ValueError(
                f"propensity has the shape {target.shape}, but Y has {len(counts)} labels"
            )
        known = ~np.isnan(target)
        if not known.any():
            raise ValueError("propensity holds no estimate: every entry is NaN")
        if not np.isfinite(target[known]).all() or (target[known] < 0).any():
            raise ValueError(
                "propensity holds infinite or negative entries: mark unknown ones by NaN"
            )
        # A raw ratio may exceed 1 by chance; the truth it estimates may not, so the distance is
        # taken to 1.
        target = np.minimum(target, 1.0)

        # Labels of one frequency share a point of the curve: fit their means, weighted by how many
        # they are.
        distinct, group, size = np.unique(counts[known], return_inverse=True, return_counts=True)
        means = np.bincount(group.ravel(), weights=target[known]) / size
        if len(distinct) < 5:
            warnings.warn(
                f"only {len(distinct)} distinct label frequencies for a curve of five parameters: "
                "it is not determined by them",
                PropensityWarning,
                stacklevel=2,
            )
        self.coef_ = _fit_curve(self._t(distinct), means, size)
        self._store(self.curve(counts))
        self.rmse_ = float(np.sqrt(np.mean((self.propensity_[known] - target[known]) ** 2)))
        return self

    def curve(self, counts: Any) -> np.ndarray:
        """Return the fitted propensity at label frequencies ``counts`` (any shape).

        Parameters
        ----------
        counts : array
            Positives of labels.
        """
        self._check_fitted()
        return _richards(self._t(np.asarray(counts, dtype=np.float64)), *self.coef_)

    def _t(self, counts: np.ndarray) -> np.ndarray:
        return np.log1p(counts) if self.scale == "log" else counts

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"coef_": self.coef_}

    def _facts(self) -> dict[str, Any]:
        return {"rmse": self.rmse_}


def _richards(
    t: np.ndarray, low: float, high: float, log_q: float, steepness: float, nu: float
) -> np.ndarray:
    """Return the curve, through logarithms: Q e^(-B t) may overflow where the curve itself does
    not.
    """
    rise = np.exp(-np.logaddexp(0.0, log_q - steepness * t) / nu)
    return low + (high - low) * rise


def _unpack(v: np.ndarray) -> tuple[float, float, float, float, float]:
    low, share, steepness, place, log_nu = v
    return low, low + (1.0 - low) * share, steepness * place, steepness, np.exp(log_nu)


def _fit_curve(t: np.ndarray, means: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the weighted least-squares fit, best of several starts: [A, K, log Q, B, nu] in units
    of ``t``.
    """
    from scipy.optimize import least_squares  # a quarter of a second to import

    unit = float(t.max()) or 1.0
    root = np.sqrt(size / size.sum())

    def residuals(v: np.ndarray) -> Any:
        return root * (_richards(t / unit, *_unpack(v)) - means)

    low = np.clip(means.min(), 2 * _LOWEST, 0.9)
    share = np.clip((means.max() - low) / (1.0 - low), 0.05, 0.95)
    fits = [
        least_squares(
            residuals,
            [low, share, *start, 0.0],
            bounds=(_LOWER, _UPPER),
            xtol=1e-9,
            ftol=1e-9,
            max_nfev=100,
        )
        for start in _STARTS
    ]
    low, high, log_q, steepness, nu = _unpack(min(fits, key=lambda fit: fit.cost).x)
    return np.array([low, high, log_q, steepness / unit, nu])
