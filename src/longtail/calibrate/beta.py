"""``Beta``: a beta curve through scores in [0, 1]."""

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
    def fit(cls, scores: Any, hits: Any) -> Beta:
        """Fit the curve by maximum likelihood on pairs (m,).

        Parameters
        ----------
        scores : array of shape (m,)
            Scores.
        hits : array of shape (m,)
            1 where the answer was right, else 0.
        """
        scores, hits = as_pairs(scores, hits)
        squash = bool(scores.min() < 0 or scores.max() > 1)
        a, b, c = fit_logistic(_logs(scores, squash), hits).tolist()
        return cls(a, b, c, squash)

    def transform(self, scores: Any) -> np.ndarray:
        """Return probabilities of the shape of ``scores``.

        Parameters
        ----------
        scores : array
            Scores, of any shape.
        """
        scores = np.clip(np.asarray(scores, np.float64), -LIMIT, LIMIT)
        return sigmoid(_logs(scores, self.squash) @ np.array([self.a, self.b]) + self.c)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what was learned."""
        return {"curve": np.array([self.a, self.b, self.c, float(self.squash)])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Beta:
        """Return the curve with these numbers.

        Parameters
        ----------
        arrays : mapping
            What ``arrays`` returned.
        """
        a, b, c, squash = checked_array(arrays, "curve", 4).tolist()
        if a < 0 or b < 0 or squash not in (0, 1):
            raise ModelFormatError("the powers of a beta calibrator must not be negative")
        return cls(a, b, c, bool(squash))


def _logs(scores: np.ndarray, squash: bool) -> np.ndarray:
    """log s and -log(1 - s) side by side, (..., 2)."""
    unit = sigmoid(scores) if squash else scores
    unit = np.clip(unit, _EDGE, 1 - _EDGE)
    return np.stack([np.log(unit), -np.log1p(-unit)], axis=-1)
