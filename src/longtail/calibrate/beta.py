"""``Beta``: a beta curve through scores in [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.calibrate.calibrator import Calibrator, fit_logistic, sigmoid
from longtail.exceptions import ModelFormatError

__all__ = ["Beta"]

_EDGE = 1e-6  # scores are kept this far away from 0 and 1


@dataclass(frozen=True)
class Beta(Calibrator):
    """``p = sigmoid(a log s - b log(1 - s) + c)`` with a, b >= 0 (Kull, Silva Filho, Flach 2017).

    Right where scores of the right and the wrong are about beta distributed, as products of
    probabilities are; unlike ``Platt`` it can be the identity, so it does no harm to scores that
    are probabilities already. Scores outside [0, 1] go through the logistic function first
    (``squash``).

    >>> curve = Beta.fit([0.1, 0.2, 0.8, 0.9] * 50, [0, 0, 1, 1] * 50)
    >>> bool(curve.transform(0.1) < 0.05 < 0.95 < curve.transform(0.9))
    True
    """

    a: float
    b: float
    c: float
    squash: bool

    name = "beta"

    @classmethod
    def _fit(cls, scores: np.ndarray, hits: np.ndarray) -> Beta:
        squash = bool(scores.min() < 0 or scores.max() > 1)
        a, b, c = fit_logistic(_logs(scores, squash), hits).tolist()
        return cls(a, b, c, squash)

    def _at(self, scores: np.ndarray) -> np.ndarray:
        return sigmoid(_logs(scores, self.squash) @ np.array([self.a, self.b]) + self.c)

    def _check(self) -> None:
        if self.a < 0 or self.b < 0 or self.squash not in (0, 1):
            raise ModelFormatError("the powers of a beta calibrator must not be negative")


def _logs(scores: np.ndarray, squash: bool) -> np.ndarray:
    """log s and -log(1 - s) side by side, (..., 2)."""
    unit = sigmoid(scores) if squash else scores
    unit = np.clip(unit, _EDGE, 1 - _EDGE)
    return np.stack([np.log(unit), -np.log1p(-unit)], axis=-1)
