"""The best step along a line: by its slope where the function is concave, else by a grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["best_step"]

_GOLDEN = float(np.sqrt(5.0) - 1) / 2


def best_step(
    at: Callable[[float], float], most: float = 1.0, *, concave: bool = False, n_grid: int = 100
) -> tuple[float, float]:
    """The step in [0, ``most``] of largest value, and how much it improves on step 0.

    A concave function is searched by golden section alone. Any other is first evaluated at
    ``n_grid`` equal steps, and the neighbourhood of the best is refined. Never worse than step 0.

    >>> step, gain = best_step(lambda x: -((x - 0.3) ** 2), concave=True)
    >>> round(step, 6), round(gain, 6)
    (0.3, 0.09)
    """
    start = at(0.0)
    low, high, best, best_value = 0.0, most, 0.0, start
    if not concave:
        steps = np.linspace(0, most, n_grid + 1)
        values = np.array([start, *(at(float(step)) for step in steps[1:])])
        top = int(np.argmax(values))
        best, best_value = float(steps[top]), float(values[top])
        low, high = float(steps[max(0, top - 1)]), float(steps[min(n_grid, top + 1)])
    refined, value = _golden_section(at, low, high)
    for step, found in ((refined, value), (most, at(most))):
        if found > best_value:
            best, best_value = step, found
    return best, best_value - start


def _golden_section(at: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = at(a), at(b)
    for _ in range(60):
        if high - low < 1e-10:
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
