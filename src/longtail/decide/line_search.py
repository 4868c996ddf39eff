"""The best step along a line: by its slope where the function is concave, else by a grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["best_step"]

_GOLDEN = float(np.sqrt(5.0) - 1) / 2


def best_step(
    at: Callable[[np.ndarray], np.ndarray], *, concave: bool = False, n_grid: int = 200
) -> tuple[float, float]:
    """Return the step in [0, 1] of largest value, and how much it improves on step 0.

    ``at`` takes an array of steps and returns their values. A concave function is searched by
    golden section alone. Any other is first evaluated at ``n_grid`` equal steps, and the
    neighbourhood of the best is refined. Never worse than step 0.

    >>> step, gain = best_step(lambda x: -((x - 0.3) ** 2), concave=True)
    >>> round(step, 6), round(gain, 6)
    (0.3, 0.09)
    """
    steps = np.array([0.0, 1.0]) if concave else np.linspace(0, 1, n_grid + 1)
    values = np.asarray(at(steps), dtype=np.float64)
    top = int(np.argmax(values))
    low, high = float(steps[max(0, top - 1)]), float(steps[min(len(steps) - 1, top + 1)])
    best, best_value = float(steps[top]), float(values[top])
    refined, value = _golden_section(lambda x: float(at(np.array([x]))[0]), low, high)
    if value > best_value:
        best, best_value = refined, value
    return best, best_value - float(values[0])


def _golden_section(at: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = at(a), at(b)
    for _ in range(60):
        if high - low < 1e-8:
            break
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = at(b)
        else:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = at(a)
    return (a, at_a) if at_a > at_b else (b, at_b)
