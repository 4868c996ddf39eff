"""``Platt``: a logistic curve through the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.calibrate.calibrator import Calibrator, fit_logistic, sigmoid
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
    def _fit(cls, scores: np.ndarray, hits: np.ndarray) -> Platt:
        return cls(*fit_logistic(scores[:, None], hits).tolist())

    def _at(self, scores: np.ndarray) -> np.ndarray:
        return sigmoid(self.slope * scores + self.intercept)

    def _check(self) -> None:
        if self.slope < 0:
            raise ModelFormatError("the slope of a calibrator must not be negative")
