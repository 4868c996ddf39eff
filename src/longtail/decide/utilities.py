"""Utilities of confusion counts: names, values and slopes.

A label is described by fractions of the rows: t (true positives), q (predicted) and p (positives),
so tp = t, fp = q - t, fn = p - t and tn = 1 - q - p + t. While a rule chooses, p stands still; a
slope is therefore a pair, the derivatives by t and by q, and naming a label for a row in which it
has the probability eta gains, to first order, ``slope_t * eta + slope_q``. In terms of the cells::

    slope_t = G_tp - G_fp - G_fn + G_tn          slope_q = G_fp - G_tn

0/0 is 0, and a label without positives (p = 0) has no slope: nothing can be gained from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "MACRO",
    "MICRO",
    "Constants",
    "LabelUtility",
    "as_utility",
    "cells",
    "check_name",
    "native_name",
    "per_label",
    "precision_share",
    "utility_names",
]

Array = np.ndarray


@dataclass(frozen=True)
class Constants:
    """``beta2``: beta squared of F-beta; ``epsilon``: added to denominators; ``floor``: smallest
    fraction at which the slope of an unbounded utility is taken.
    """

    beta2: float = 1.0
    epsilon: float = 0.0
    floor: float = 1e-9


@dataclass(frozen=True)
class LabelUtility:
    """A utility of one label, by its name in the kernels; ``concave`` in (t, q) jointly."""

    native: str
    value: Callable[[Array, Array, Array, Constants], Array]
    slope: Callable[[Array, Array, Array, Constants], tuple[Array, Array]]
    concave: bool = False


def _ratio(a: Array, b: Array) -> Array:
    b = np.asarray(b, dtype=np.float64)
    out: Array = np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)
    return out


def _fraction(
    native: str, terms: Callable[[float], tuple[float, float, float, float]], concave: bool = False
) -> LabelUtility:
    """Return ``a t / (b_p p + b_q q + b_t t)``; ``terms(beta squared)`` gives a, b_p, b_q, b_t."""

    def below(t: Array, q: Array, p: Array, c: Constants) -> Array:
        _, by_p, by_q, by_t = terms(c.beta2)
        total = by_p * p + by_q * q
        return np.asarray((total + by_t * t if by_t else total) + c.epsilon)

    def value(t: Array, q: Array, p: Array, c: Constants) -> Array:
        return _ratio(terms(c.beta2)[0] * t, below(t, q, p, c))

    def slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
        a, _, by_q, by_t = terms(c.beta2)
        d = below(t, q, p, c)
        if by_q:  # where it is 0 nothing that is named brings d down to 0
            d = np.maximum(d, c.floor)
        square = d**2
        rise = _ratio(np.full_like(d, a), d) - _ratio(by_t * a * t, square)
        return np.where(p > 0, rise, 0.0), np.where(p > 0, -_ratio(by_q * a * t, square), 0.0)

    return LabelUtility(native, value, slope, concave)


def _of_rates(
    native: str,
    mean: Callable[[Array, Array], Array],
    slopes: Callable[[Array, Array, float], tuple[Any, Any]],
) -> LabelUtility:
    """Return a mean of the true positive rate r and the true negative rate s; ``slopes`` are its
    derivatives by both, with a floor for what is divided by.
    """

    def rates(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
        negatives = np.maximum(1 - q - p + t, 0)
        return _ratio(t, p + c.epsilon), _ratio(negatives, np.maximum(1 - p, 0) + c.epsilon)

    def value(t: Array, q: Array, p: Array, c: Constants) -> Array:
        return np.asarray(mean(*rates(t, q, p, c)))

    def slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
        by_r, by_s = slopes(*rates(t, q, p, c), c.floor)
        ones = np.ones_like(p)
        r_t, s_t = _ratio(ones, p + c.epsilon), _ratio(ones, np.maximum(1 - p, 0) + c.epsilon)
        return np.where(p > 0, by_r * r_t + by_s * s_t, 0.0), -by_s * s_t

    return LabelUtility(native, value, slope, concave=True)


def _fowlkes_mallows(t: Array, q: Array, p: Array, c: Constants) -> Array:
    return _ratio(t, np.sqrt((q + c.epsilon) * (p + c.epsilon)))


def _fowlkes_mallows_slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    q = np.maximum(q + c.epsilon, c.floor)
    root = np.sqrt(q * np.maximum(p + c.epsilon, c.floor))
    return np.where(p > 0, 1 / root, 0.0), np.where(p > 0, -t / (2 * root * q), 0.0)


def _g_mean_slopes(r: Array, s: Array, floor: float) -> tuple[Array, Array]:
    r, s = np.maximum(r, floor), np.maximum(s, floor)
    return np.sqrt(s / r) / 2, np.sqrt(r / s) / 2


def _h_mean_slopes(r: Array, s: Array, floor: float) -> tuple[Array, Array]:
    total = np.maximum(r + s, floor) ** 2
    return 2 * s**2 / total, 2 * r**2 / total


_KINDS = {
    "precision": _fraction("precision", lambda _: (1, 0, 1, 0)),
    "recall": _fraction("recall", lambda _: (1, 1, 0, 0), concave=True),
    "f1": _fraction("f_beta", lambda b2: (1 + b2, b2, 1, 0)),
    "f_beta": _fraction("f_beta", lambda b2: (1 + b2, b2, 1, 0)),
    "jaccard": _fraction("jaccard", lambda _: (1, 1, 1, -1)),
    "balanced_accuracy": _of_rates(
        "balanced_accuracy", lambda r, s: (r + s) / 2, lambda r, s, floor: (0.5, 0.5)
    ),
    "g_mean": _of_rates("g_mean", lambda r, s: np.sqrt(r * s), _g_mean_slopes),
    "h_mean": _of_rates("h_mean", lambda r, s: _ratio(2 * r * s, r + s), _h_mean_slopes),
    "fowlkes_mallows": LabelUtility("fowlkes_mallows", _fowlkes_mallows, _fowlkes_mallows_slope),
}
MACRO = {f"macro_{kind}": utility for kind, utility in _KINDS.items()}
MICRO = {f"micro_{kind}": utility for kind, utility in _KINDS.items()}


def utility_names(*, micro: bool = False, coverage: bool = False) -> list[str]:
    """Return names that a rule accepts."""
    return ["precision", *MACRO, *(MICRO if micro else ()), *(["coverage"] if coverage else [])]


def check_name(metric: str, *, micro: bool = False, coverage: bool = False) -> None:
    """Raise ValueError for a name that a rule does not accept."""
    names = utility_names(micro=micro, coverage=coverage)
    if metric in names:
        return
    hint = ""
    if metric in MICRO:
        hint = " (a micro metric is no sum over labels: use FrankWolfe or Threshold)"
    elif metric == "coverage":
        hint = " (coverage is no function of the counts: use BlockCoordinateAscent)"
    raise ValueError(
        f"unknown metric {metric!r}{hint}: use one of {', '.join(names)}, or a function of "
        "(tp, fp, fn, tn)"
    )


def native_name(metric: str) -> str:
    """Return the kernel's name of a metric."""
    if metric == "precision":
        return "none"  # the weight of precision is 1, see precision_share
    return MACRO[metric].native if metric in MACRO else metric


def precision_share(metric: Any, weight: float, k: int | None) -> float:
    """Return the weight of precision at k in the objective: 1 if that is the metric itself."""
    if not 0 <= weight <= 1:
        raise ValueError(f"precision_weight must lie in [0, 1], got {weight!r}")
    share = 1.0 if metric == "precision" else float(weight)
    if share and k is None:
        raise ValueError("precision at k needs a k")
    return share


def cells(t: Array, q: Array, p: Array) -> tuple[Array, Array, Array, Array]:
    """Return (tp, fp, fn, tn)."""
    return t, np.maximum(q - t, 0), np.maximum(p - t, 0), np.maximum(1 - q - p + t, 0)


def per_label(metric: Any) -> Callable[..., Array]:
    """Return a function of (tp, fp, fn, tn), each of shape (L,), whose values are checked."""
    if not callable(metric):
        raise TypeError(f"metric must be a name or a function of (tp, fp, fn, tn), got {metric!r}")

    def checked(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
        values = np.ascontiguousarray(metric(tp, fp, fn, tn), dtype=np.float64)
        if values.shape != tp.shape:
            raise ValueError(
                f"the metric must return one value per label, shape {tp.shape}, got "
                f"{values.shape}; one number for all labels needs FrankWolfe(gradient=...)"
            )
        if not np.isfinite(values).all():
            raise ValueError("the metric returned NaN or infinity: guard its divisions by zero")
        return values

    return checked


def as_utility(metric: Any) -> LabelUtility:
    """Return the utility of a macro or micro metric by name, or of a function, by differences."""
    if isinstance(metric, str):
        return _KINDS[metric.partition("_")[2]]
    function = per_label(metric)

    def value(t: Array, q: Array, p: Array, c: Constants) -> Array:
        return function(*cells(t, q, p))

    def slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
        """Stay inside 0 <= t <= min(p, q) and q <= 1 - p + t."""
        q = np.maximum(q, c.floor)
        h = 1e-6 * np.maximum(c.floor, np.minimum(p, q))
        low, high = np.maximum(t - h, 0), np.minimum(t + h, np.minimum(p, q))
        by_t = _ratio(value(high, q, p, c) - value(low, q, p, c), high - low)
        low, high = np.maximum(q - h, t), np.minimum(q + h, 1 - p + t)
        return by_t, _ratio(value(t, high, p, c) - value(t, low, p, c), high - low)

    return LabelUtility("function", value, slope)
