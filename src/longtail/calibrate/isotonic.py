"""``Isotonic``: whatever rising curve fits best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.calibrate.calibrator import Calibrator, checked_array
from longtail.exceptions import ModelFormatError

__all__ = ["Isotonic", "pool_adjacent_violators"]

_MOST_GROUPS = 1 << 16


@dataclass(frozen=True, eq=False)
class Isotonic(Calibrator):
    """The rising step function of least squared error (Zadrozny and Elkan 2002), joined by lines.

    ``knots`` and ``values`` (m,): mean score and share of hits of each step; between them the curve
    is straight, so that different scores keep different probabilities, and outside constant. The
    first and the last step never say 0 or 1: a step of n pairs without a hit says 1 / (n + 2).

    Assumes nothing about the curve, so it needs more pairs than ``Platt`` or ``Beta``: some
    thousand.

    >>> curve = Isotonic.fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> curve.knots.round(2), curve.values.round(2)
    (array([0.1 , 0.25, 0.4 ]), array([0.33, 0.5 , 0.67]))
    """

    knots: np.ndarray
    values: np.ndarray

    name = "isotonic"

    @classmethod
    def _fit(cls, scores: np.ndarray, hits: np.ndarray) -> Isotonic:
        order = np.argsort(scores, kind="stable")
        scores, hits = scores[order], hits[order]
        new = np.ones(len(scores), bool)
        new[1:] = scores[1:] != scores[:-1]
        group = np.cumsum(new) - 1
        if group[-1] >= _MOST_GROUPS:  # equal masses instead of single scores
            cut = np.linspace(0, len(scores), _MOST_GROUPS, endpoint=False).astype(np.int64)
            group = np.searchsorted(cut, np.flatnonzero(new), side="right")[group]
            group = np.unique(group, return_inverse=True)[1].reshape(-1)
        sizes = np.bincount(group).astype(np.float64)
        means = np.bincount(group, hits) / sizes
        step = pool_adjacent_violators(means, sizes)[group]
        counts = np.bincount(step).astype(np.float64)
        knots = np.bincount(step, scores) / counts
        values = np.bincount(step, hits) / counts
        values[0] = max(values[0], min([1 / (counts[0] + 2), *values[1:2]]))
        values[-1] = min(values[-1], max([1 - 1 / (counts[-1] + 2), *values[-2:-1]]))
        return cls(knots, values)

    def _at(self, scores: np.ndarray) -> np.ndarray:
        return np.asarray(np.interp(scores, self.knots, self.values))

    def _check(self) -> None:
        falls = (np.diff(self.knots) < 0).any() or (np.diff(self.values) < 0).any()
        if not len(self.knots) or falls or self.values[0] < 0 or self.values[-1] > 1:
            raise ModelFormatError("an isotonic calibrator must rise within [0, 1]")

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what was learned."""
        return {"knots": self.knots, "values": self.values}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Isotonic:
        """Return the curve through these points.

        Parameters
        ----------
        arrays : mapping
            What ``arrays`` returned.
        """
        knots = checked_array(arrays, "knots", None)
        found = cls(knots, checked_array(arrays, "values", len(knots)))
        found._check()
        return found


def pool_adjacent_violators(means: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the step of each group, (m,) int64: neighbours join until the means of steps rise.

    >>> pool_adjacent_violators(np.array([0.0, 1.0, 0.5, 2.0]), np.ones(4))
    array([0, 1, 1, 2])
    """
    total: list[float] = []
    weight: list[float] = []
    length: list[int] = []
    for mean, size in zip(means.tolist(), sizes.tolist(), strict=True):
        total.append(mean * size)
        weight.append(size)
        length.append(1)
        while len(total) > 1 and total[-2] * weight[-1] >= total[-1] * weight[-2]:
            total[-2:] = [total[-2] + total[-1]]
            weight[-2:] = [weight[-2] + weight[-1]]
            length[-2:] = [length[-2] + length[-1]]
    return np.repeat(np.arange(len(length)), length)
