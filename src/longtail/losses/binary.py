"""Binary losses ``l(s, 1)`` and ``l(s, 0)`` of a score, with their slopes.

=============  ==========================  ============================
name           ``l1 = l(s, 1)``            ``l0 = l(s, 0)``
=============  ==========================  ============================
logistic       ``log(1 + e^{-s})``         ``log(1 + e^{s})``
squared_hinge  ``max(0, 1 - s)^2``         ``max(0, 1 + s)^2``
hinge          ``max(0, 1 - s)``           ``max(0, 1 + s)``
squared_error  ``(s - 1)^2``               ``s^2``
=============  ==========================  ============================

The difference ``l1 - l0`` is linear in s for the first and the last, which is why only these stay
convex under the unbiased correction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["BINARY_LOSSES", "BinaryLoss", "as_binary"]

Curve = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class BinaryLoss:
    """``positive`` and ``negative``: from scores to values and slopes of l(s, 1) and l(s, 0).

    >>> value, slope = BINARY_LOSSES["hinge"].positive(np.array([0.0, 2.0]))
    >>> value, slope
    (array([1., 0.]), array([-1.,  0.]))
    """

    positive: Curve
    negative: Curve


def _margin(phi: Curve) -> BinaryLoss:
    """Return a loss of the margin: ``l(s, 1) = phi(s)``, ``l(s, 0) = phi(-s)``."""

    def negative(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slope = phi(-s)
        return value, -slope

    return BinaryLoss(phi, negative)


def _logistic(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    small = np.exp(-np.abs(s))  # never overflows
    value = np.maximum(-s, 0.0) + np.log1p(small)
    return value, -np.where(s > 0, small, 1.0) / (1.0 + small)


def _hinge(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.maximum(0.0, 1.0 - s), np.where(s < 1.0, -1.0, 0.0)


def _squared_hinge(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    short = np.maximum(0.0, 1.0 - s)
    return short**2, -2.0 * short


BINARY_LOSSES = {
    "logistic": _margin(_logistic),
    "squared_hinge": _margin(_squared_hinge),
    "hinge": _margin(_hinge),
    "squared_error": BinaryLoss(
        lambda s: ((s - 1.0) ** 2, 2.0 * (s - 1.0)), lambda s: (s**2, 2.0 * s)
    ),
}


def as_binary(base: str | BinaryLoss) -> BinaryLoss:
    """Return a binary loss by name, or one's own."""
    if isinstance(base, BinaryLoss):
        return base
    if not isinstance(base, str) or base not in BINARY_LOSSES:
        raise ValueError(
            f"base must be one of {', '.join(BINARY_LOSSES)}, or a BinaryLoss, got {base!r}"
        )
    return BINARY_LOSSES[base]
