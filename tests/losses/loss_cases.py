"""Small problems, and expectations over all masks, for the tests of losses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from longtail import losses

BASES = list(losses.BINARY_LOSSES)


def masks(m: int) -> np.ndarray:
    """All 2^m masks, bool."""
    return np.array(list(itertools.product([False, True], repeat=m)))


def expectation(
    loss: Callable[..., losses.LossValue], scores: np.ndarray, y: np.ndarray, p: np.ndarray
) -> tuple[float, np.ndarray]:
    """Mean value and gradient of ``loss`` on one row, over all ways its labels can go missing."""
    drawn = masks(len(y))
    chance = np.prod(np.where(drawn, p, 1 - p), axis=1)
    value, gradient = loss(np.tile(scores, (len(drawn), 1)), drawn * y, p)
    return float(chance @ value), chance @ gradient


def problems(m: int = 4, n: int = 6, seed: int = 0) -> Iterator[tuple[np.ndarray, ...]]:
    """Scores, complete labels and propensities of single rows."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        y = (rng.random(m) < 0.6).astype(float)
        yield rng.normal(size=m) * 2, y, rng.uniform(0.3, 1.0, m)


def batch(n: int = 7, m: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores (n, m), observed labels (n, m) with an empty row, propensities (m,), one of them 1."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, m)) < 0.5).astype(np.float32)
    Y[0] = 0
    p = rng.uniform(0.2, 1.0, m)
    p[1] = 1.0
    return rng.normal(size=(n, m)) * 2, Y, p


def numeric_gradient(loss: Any, scores: np.ndarray, *args: Any) -> np.ndarray:
    """Central differences of the value of every row by its scores."""
    h, out = 1e-6, np.empty_like(scores)
    for j in range(scores.shape[1]):
        up, down = scores.copy(), scores.copy()
        up[:, j] += h
        down[:, j] -= h
        out[:, j] = (loss(up, *args).value - loss(down, *args).value) / (2 * h)
    return out
