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

import numpy as np

__all__ = ["MACRO", "MICRO", "LabelUtility", "native_name", "utility_names"]

Array = np.ndarray
Value = Callable[[Array, Array, Array, "Constants"], Array]
Slope = Callable[[Array, Array, Array, "Constants"], tuple[Array, Array]]


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
    """A named utility of one label; ``concave`` in (t, q) jointly."""

    native: str
    value: Value
    slope: Slope
    concave: bool = False


def _ratio(a: Array, b: Array) -> Array:
    b = np.asarray(b, dtype=np.float64)
    out: Array = np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)
    return out


def _precision(t: Array, q: Array, p: Array, c: Constants) -> Array:
    return _ratio(t, q + c.epsilon)


def _precision_slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    d = np.maximum(q + c.epsilon, c.floor)
    return _where(p, 1 / d), _where(p, -t / d**2)


def _recall(t: Array, q: Array, p: Array, c: Constants) -> Array:
    return _ratio(t, p + c.epsilon)


def _recall_slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    return _where(p, _ratio(np.ones_like(t), p + c.epsilon)), np.zeros_like(t)


def _f_beta(t: Array, q: Array, p: Array, c: Constants) -> Array:
    return _ratio((1 + c.beta2) * t, c.beta2 * p + q + c.epsilon)


def _f_beta_slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    d = np.maximum(c.beta2 * p + q + c.epsilon, c.floor)
    return _where(p, (1 + c.beta2) / d), _where(p, -(1 + c.beta2) * t / d**2)


def _jaccard(t: Array, q: Array, p: Array, c: Constants) -> Array:
    return _ratio(t, p + q - t + c.epsilon)


def _jaccard_slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    d = np.maximum(p + q - t + c.epsilon, c.floor)
    return _where(p, (d + t) / d**2), _where(p, -t / d**2)


def _fowlkes_mallows(t: Array, q: Array, p: Array, c: Constants) -> Array:
    return _ratio(t, np.sqrt((q + c.epsilon) * (p + c.epsilon)))


def _fowlkes_mallows_slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    q = np.maximum(q + c.epsilon, c.floor)
    root = np.sqrt(q * np.maximum(p + c.epsilon, c.floor))
    return _where(p, 1 / root), _where(p, -t / (2 * root * q))


def _rates(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    """Return true positive and true negative rate."""
    negatives = np.maximum(1 - q - p + t, 0)
    return _ratio(t, p + c.epsilon), _ratio(negatives, np.maximum(1 - p, 0) + c.epsilon)


def _from_rates(by_r: Array, by_s: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    """Slopes in (t, q) from those in the two rates."""
    ones = np.ones_like(p)
    r_t, s_t = _ratio(ones, p + c.epsilon), _ratio(ones, np.maximum(1 - p, 0) + c.epsilon)
    return _where(p, by_r * r_t + by_s * s_t), -by_s * s_t


def _balanced_accuracy(t: Array, q: Array, p: Array, c: Constants) -> Array:
    r, s = _rates(t, q, p, c)
    return np.asarray((r + s) / 2)


def _balanced_accuracy_slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    half = np.full_like(p, 0.5)
    return _from_rates(half, half, p, c)


def _g_mean(t: Array, q: Array, p: Array, c: Constants) -> Array:
    r, s = _rates(t, q, p, c)
    return np.asarray(np.sqrt(r * s))


def _g_mean_slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    r, s = (np.maximum(rate, c.floor) for rate in _rates(t, q, p, c))
    return _from_rates(np.sqrt(s / r) / 2, np.sqrt(r / s) / 2, p, c)


def _h_mean(t: Array, q: Array, p: Array, c: Constants) -> Array:
    r, s = _rates(t, q, p, c)
    return _ratio(2 * r * s, r + s)


def _h_mean_slope(t: Array, q: Array, p: Array, c: Constants) -> tuple[Array, Array]:
    r, s = _rates(t, q, p, c)
    total = np.maximum(r + s, c.floor) ** 2
    return _from_rates(2 * s**2 / total, 2 * r**2 / total, p, c)


def _where(p: Array, slope: Array) -> Array:
    return np.where(p > 0, slope, 0.0)


_KINDS = {
    "precision": LabelUtility("precision", _precision, _precision_slope),
    "recall": LabelUtility("recall", _recall, _recall_slope, concave=True),
    "f1": LabelUtility("f_beta", _f_beta, _f_beta_slope),
    "f_beta": LabelUtility("f_beta", _f_beta, _f_beta_slope),
    "jaccard": LabelUtility("jaccard", _jaccard, _jaccard_slope),
    "balanced_accuracy": LabelUtility(
        "balanced_accuracy", _balanced_accuracy, _balanced_accuracy_slope, concave=True
    ),
    "g_mean": LabelUtility("g_mean", _g_mean, _g_mean_slope, concave=True),
    "h_mean": LabelUtility("h_mean", _h_mean, _h_mean_slope, concave=True),
    "fowlkes_mallows": LabelUtility("fowlkes_mallows", _fowlkes_mallows, _fowlkes_mallows_slope),
}
MACRO = {f"macro_{kind}": utility for kind, utility in _KINDS.items()}
MICRO = {f"micro_{kind}": utility for kind, utility in _KINDS.items()}


def utility_names(*, micro: bool = False, coverage: bool = False) -> list[str]:
    """Return names that a rule accepts."""
    return ["precision", *MACRO, *(MICRO if micro else ()), *(["coverage"] if coverage else [])]


def native_name(metric: str, *, coverage: bool) -> str:
    """Return the kernel's name of a metric; refuses those that are no sum over labels."""
    if metric == "precision":
        return "none"  # the weight of precision is 1, see BlockCoordinateAscent
    if metric == "coverage" and coverage:
        return "coverage"
    if metric in MACRO:
        return MACRO[metric].native
    known = ", ".join(utility_names(coverage=coverage))
    hint = ""
    if metric in MICRO:
        hint = " (a micro metric is no sum over labels: use FrankWolfe or Threshold)"
    raise ValueError(f"unknown metric {metric!r}{hint}: use one of {known}, or a function")
