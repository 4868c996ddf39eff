"""Weights per label that correct one-vs-all losses for missing labels and for rare classes.

A label j that is relevant is observed with probability ``p_j``, its propensity, and an absent label
is never observed. The unbiased estimate of the 0-1 loss of an observed label is, up to a constant,
``(2/p - 1) 1[s < 0]``; a convex loss in place of the indicator gives the propensity-weighted
surrogate (Qaraei et al. 2021), an ordinary weighted one-vs-all problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["BALANCES", "as_propensity", "class_balance", "propensity_values", "surrogate_weights"]

BALANCES = (None, "after", "before")


def as_propensity(propensity: Any, n_labels: int | None, name: str = "propensity") -> np.ndarray:
    """Return propensities (L,) float64 in (0, 1], from a fitted model, an array, or None for all
    ones.

    A model is any object with ``propensity_`` or ``inverse_``. Nothing is clipped: values outside
    (0, 1] are refused.

    Parameters
    ----------
    propensity : array of shape (L,), or a propensity model
        How likely a true label is to be observed.
    n_labels : int or None
        Number of labels, L; None takes as many as there are propensities.
    name : str, default="propensity"
        What it is called in messages.

    >>> as_propensity([1.0, 0.5], 2)
    array([1. , 0.5])
    """
    if propensity is None:
        if n_labels is None:
            raise ValueError(f"{name} is None: give propensities, or the number of labels")
        return np.ones(n_labels)
    learned = ("propensity_", "inverse_")
    if hasattr(propensity, "fit") and not any(hasattr(propensity, each) for each in learned):
        raise ValueError(
            f"{name}: this {type(propensity).__name__} is not fitted yet: call fit first, or pass "
            "the array propensity_ of a fitted one (scikit-learn's clone forgets what was learned)"
        )
    try:
        p = propensity_values(propensity)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be an array of propensities or a propensity model, got {propensity!r}"
        ) from None
    if p.shape != (p.size if n_labels is None else n_labels,):
        raise ValueError(
            f"{name} must hold one propensity for each of the {n_labels} labels, "
            f"got shape {p.shape}"
        )
    bad = ~((p > 0) & (p <= 1))  # also catches NaN
    if bad.any():
        j = int(np.argmax(bad))
        raise ValueError(
            f"{name} of label {j} is {p[j]:g}: probabilities in (0, 1] are needed; for inverse "
            "propensities q pass 1/q"
        )
    if p.size and p.min() < 1e-300:
        raise ValueError(f"{name}: the smallest, {p.min():g}, has no finite inverse")
    return p


def propensity_values(propensity: Any) -> np.ndarray:
    """Return the values of an array or a model, as float64, whatever they are."""
    values: Any = propensity
    if hasattr(propensity, "propensity_"):
        values = propensity.propensity_
    elif hasattr(propensity, "inverse_"):
        with np.errstate(divide="ignore", invalid="ignore"):
            values = 1.0 / np.asarray(propensity.inverse_, dtype=np.float64)
    return np.ascontiguousarray(values, dtype=np.float64)


def class_balance(counts: Any, beta: float = 0.9) -> np.ndarray:
    """Return ``c_j = (1 - beta) / (1 - beta^{n_j})`` (L,): 1 for a single positive, towards 1 -
    beta for many.

    The inverse of the effective number of samples (Cui et al. 2019). A label without positives gets
    0, having nothing to weigh. ``beta`` in [0, 1); 0 balances nothing.

    Parameters
    ----------
    counts : array of shape (L,)
        Positives of each label.
    beta : float, default=0.9
        Of the balance, in [0, 1); 0 balances nothing.

    >>> class_balance([0, 1, 2, 1000], beta=0.5)
    array([0.        , 1.        , 0.66666667, 0.5       ])
    """
    if not 0 <= beta < 1:
        raise ValueError(f"beta must lie in [0, 1), got {beta}")
    n = np.asarray(counts, dtype=np.float64)
    if not (np.isfinite(n) & (n >= 0)).all():
        raise ValueError("counts must be finite and not negative")
    some = n > 0
    out = np.zeros_like(n)
    if beta == 0:
        out[some] = 1.0
    else:
        out[some] = (1.0 - beta) / -np.expm1(n[some] * np.log(beta))
    return out


def surrogate_weights(
    propensity: Any,
    counts: Any = None,
    *,
    balance: str | None = None,
    beta: float = 0.9,
    mean_one: bool = False,
) -> np.ndarray:
    """Weight (L,) float64 of an observed label in the convex surrogate; an absent one weighs 1.

    ========  =====================================  ============================================
    balance   weight                                 reading
    ========  =====================================  ============================================
    None      ``2/p - 1``                            corrected for missing labels only
    "after"   ``(2/p - 1) c(n)``                     corrected, then balanced (PW-cb)
    "before"  ``c(n/p)/p + 1/p - 1``, 0 if n = 0     the balanced loss, corrected; n/p estimates
                                                     the complete count
    ========  =====================================  ============================================

    ``c`` is ``class_balance``; ``counts`` (L,) are the observed positives ``n_j``, needed for it.
    ``mean_one`` rescales the weights to mean 1, as deep models want them; linear models use them
    raw. With p = 1 everywhere the weights are 1, or ``c(n)``.

    Parameters
    ----------
    propensity : array of shape (L,), or a propensity model
        How likely a true label is to be observed.
    counts : array of shape (L,), default=None
        Positives of each label.
    balance : str, default=None
        Whether labels are also balanced by their frequency, and when; see
        ``surrogate_weights``.
    beta : float, default=0.9
        Of the balance, in [0, 1); 0 balances nothing.
    mean_one : bool, default=False
        Scale the weights to a mean of 1.

    >>> surrogate_weights([1.0, 0.5, 0.1])
    array([ 1.,  3., 19.])
    >>> surrogate_weights([0.5, 0.5], [1, 1000], balance="after")
    array([3. , 0.3])

    M. Qaraei, E. Schultheis, P. Gupta and R. Babbar, "Convex surrogates for unbiased loss functions
    in extreme classification with missing labels", WWW 2021 (their 2p - 1 is a misprint of 2/p -
    1 in one equation).
    """
    if balance not in BALANCES:
        raise ValueError(f"balance must be None, 'after' or 'before', got {balance!r}")
    if balance is not None and counts is None:
        raise ValueError("balance needs counts, the observed positives of each label")
    p = as_propensity(propensity, None if counts is None else np.size(counts))
    inverse = 1.0 / p
    if balance is None:
        weights = 2.0 * inverse - 1.0
    elif balance == "after":
        weights = (2.0 * inverse - 1.0) * class_balance(counts, beta)
    else:
        n = np.asarray(counts, dtype=np.float64)
        weights = class_balance(n * inverse, beta) * inverse + (inverse - 1.0)
        weights[n == 0] = 0.0
    if mean_one and weights.sum() > 0:
        weights *= len(weights) / weights.sum()
    return weights
