"""The best step along a line, for functions that no kernel knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["best_step"]


def best_step(at: Callable[[np.ndarray], np.ndarray], *, n_grid: int = 200) -> tuple[float, float]:
    """Return the step in [0, 1] of largest value, and how much it improves on step 0.

    ``at`` takes an array of steps and returns their values. It is evaluated at ``n_grid`` equal
    steps first, and the neighbourhood of the best is refined by Brent's method. Never worse than
    step 0.

    >>> step, gain = best_step(lambda x: -((x - 0.3) ** 2))
    >>> round(step, 6), round(gain, 6)
    (0.3, 0.09)
    """
    from scipy.optimize import minimize_scalar

    steps = np.linspace(0, 1, n_grid + 1)
    values = np.asarray(at(steps), dtype=np.float64)
    top = int(np.argmax(values))
    best, best_value = float(steps[top]), float(values[top])
    near = steps[max(0, top - 1)], steps[min(n_grid, top + 1)]
    fine = minimize_scalar(
        lambda x: -float(at(np.array([x]))[0]),
        bounds=near,
        method="bounded",
        options={"xatol": 1e-8},
    )
    if -fine.fun > best_value:
        best, best_value = float(fine.x), -float(fine.fun)
    return best, best_value - float(values[0])
