"""``Platt``: a logistic curve through the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.calibrate.calibrator import (
    LIMIT,
    Calibrator,
    as_pairs,
    checked_array,
    fit_logistic,
    sigmoid,
)
from longtail.exceptions import ModelFormatError

__all__ = ["Platt"]


@dataclass(frozen=True)
class Platt(Calibrator):
    """``p = 1 / (1 + exp(-(slope s + intercept)))`` (Platt 1999), slope >= 0.

    Two numbers: little to overfit, right where scores of the right and the wrong are about normal,
    as margins are. For scores in [0, 1] prefer ``Beta``.

    >>> curve = Platt.fit([-1.0, -0.5, 0.5, 1.0] * 50, [0, 0, 1, 1] * 50)
    >>> bool(curve.transform(-1.0) < 0.05 < 0.95 < curve.transform(1.0))
    True
    """

    slope: float
    intercept: float

    name = "platt"

    @classmethod
    def fit(cls, scores: Any, hits: Any) -> Platt:
        """Fit the curve by maximum likelihood on pairs (m,).

        Parameters
        ----------
        scores : array of shape (m,)
            Scores.
        hits : array of shape (m,)
            1 where the answer was right, else 0.
        """
        scores, hits = as_pairs(scores, hits)
        return cls(*fit_logistic(scores[:, None], hits).tolist())

    def transform(self, scores: Any) -> np.ndarray:
        """Return probabilities of the shape of ``scores``.

        Parameters
        ----------
        scores : array
            Scores, of any shape.
        """
        scores = np.clip(np.asarray(scores, np.float64), -LIMIT, LIMIT)
        return sigmoid(self.slope * scores + self.intercept)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what was learned."""
        return {"curve": np.array([self.slope, self.intercept])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Platt:
        """Return the curve with these numbers.

        Parameters
        ----------
        arrays : mapping
            What ``arrays`` returned.
        """
        slope, intercept = checked_array(arrays, "curve", 2).tolist()
        if slope < 0:
            raise ModelFormatError("the slope of a calibrator must not be negative")
        return cls(slope, intercept)
