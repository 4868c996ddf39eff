"""``Calibrator``: a rising function from scores to probabilities, and what all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from longtail.exceptions import ModelFormatError

__all__ = [
    "LIMIT",
    "Calibrator",
    "as_pairs",
    "checked_array",
    "fit_logistic",
    "log_loss",
    "sigmoid",
]

SomeCalibrator = TypeVar("SomeCalibrator", bound="Calibrator")
LIMIT = float(np.finfo(np.float32).max)  # what infinite scores are cut to


class Calibrator(ABC):
    """A function fitted by ``fit(scores, hits)`` and applied by ``transform(scores)``.

    ``scores`` (m,) float, of answered pairs of row and label; ``hits`` (m,) in [0, 1], whether (or
    how much) the label was true. ``transform`` maps an array of any shape to probabilities,
    float64, that never fall where scores rise (but for rounding). -inf, the logarithm of a product
    that vanished, is a score like any other.

    A subclass is a dataclass of numbers with ``_fit``, ``_at`` and ``_check``; scores come to it as
    float64, finite.
    """

    name: ClassVar[str]

    @classmethod
    def fit(cls: type[SomeCalibrator], scores: Any, hits: Any) -> SomeCalibrator:
        """Learn from held-out pairs.

        Parameters
        ----------
        scores : array of shape (m,)
            Scores.
        hits : array of shape (m,)
            1 where the answer was right, else 0.
        """
        return cls._fit(*as_pairs(scores, hits))

    def transform(self, scores: Any) -> np.ndarray:
        """Return probabilities of the shape of ``scores``.

        Parameters
        ----------
        scores : array
            Scores, of any shape.
        """
        return self._at(np.clip(np.asarray(scores, np.float64), -LIMIT, LIMIT))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what was learned, by name, float64."""
        return {"curve": np.array([float(getattr(self, f.name)) for f in fields(self)])}  # type: ignore[arg-type]

    @classmethod
    def from_arrays(cls: type[SomeCalibrator], arrays: dict[str, np.ndarray]) -> SomeCalibrator:
        """Return the calibrator with these arrays, refused if they are none of its kind.

        Parameters
        ----------
        arrays : mapping
            What ``arrays`` returned.
        """
        numbers = checked_array(arrays, "curve", len(fields(cls)))  # type: ignore[arg-type]
        found = cls(*numbers.tolist())
        found._check()
        return found

    @classmethod
    @abstractmethod
    def _fit(cls: type[SomeCalibrator], scores: np.ndarray, hits: np.ndarray) -> SomeCalibrator:
        """Learn from checked pairs."""

    @abstractmethod
    def _at(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities of finite scores."""

    @abstractmethod
    def _check(self) -> None:
        """Raise ModelFormatError if the numbers make no rising function."""


def as_pairs(scores: Any, hits: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and hits as float64, infinities cut to the range of float32."""
    scores = np.clip(np.asarray(scores, np.float64).reshape(-1), -LIMIT, LIMIT)
    hits = np.asarray(hits, np.float64).reshape(-1)
    if len(scores) != len(hits):
        raise ValueError(f"there are {len(scores)} scores, but {len(hits)} hits")
    if not len(scores):
        raise ValueError("there is no answered pair to calibrate on")
    if np.isnan(scores).any() or not ((hits >= 0) & (hits <= 1)).all():
        raise ValueError("scores must not be NaN, and hits must lie in [0, 1]")
    return scores, hits


def log_loss(probabilities: Any, hits: Any) -> float:
    """Return the mean of -(h log p + (1 - h) log(1 - p)), with p kept 1e-7 away from 0 and 1.

    Parameters
    ----------
    probabilities : array of shape (m,)
        Probabilities.
    hits : array of shape (m,)
        1 where the answer was right, else 0.

    >>> round(log_loss([0.5, 0.5], [1, 0]), 4)
    0.6931
    """
    p = np.clip(np.asarray(probabilities, np.float64), 1e-7, 1 - 1e-7)
    hits = np.asarray(hits, np.float64)
    return float(-np.mean(hits * np.log(p) + (1 - hits) * np.log1p(-p)))


def fit_logistic(features: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """Return weights (f + 1,), the intercept last, of ``p = sigmoid(features w + b)``, with w >= 0.

    Maximum likelihood by Newton's method, on Platt's targets: a hit counts (P + 1) / (P + 2) and a
    miss 1 / (N + 2) for P hits and N misses, so that separable data keep finite weights. A weight
    that would be negative makes the function fall; it is set to 0 and the others are fitted again.
    """
    positives = float(hits.sum())
    high, low = (positives + 1) / (positives + 2), 1 / (len(hits) - positives + 2)
    targets = low + (high - low) * hits
    used = list(range(features.shape[1]))
    weights = np.zeros(features.shape[1] + 1)
    while True:
        own = np.column_stack([features[:, used], np.ones(len(hits))])
        found = _newton(own, targets)
        negative = [f for f, w in zip(used, found, strict=False) if w < 0]
        if not negative:
            weights[[*used, -1]] = found
            return weights
        used = [f for f in used if f not in negative]


def _newton(features: np.ndarray, targets: np.ndarray) -> np.ndarray:
    scale = np.maximum(np.abs(features).max(axis=0), 1e-30)
    features = features / scale
    n, width = features.shape
    w = np.zeros(width)
    w[-1] = np.log(targets.mean() / (1 - targets.mean()))
    loss = _loss(features, targets, w)
    for _ in range(100):
        p = sigmoid(features @ w)
        gradient = features.T @ (p - targets) / n
        if np.abs(gradient).max() < 1e-10:
            break
        curvature = features.T @ (features * (p * (1 - p))[:, None]) / n
        step = np.linalg.solve(curvature + 1e-10 * np.eye(width), gradient)
        size = 1.0
        while size > 1e-8 and _loss(features, targets, w - size * step) > loss:
            size /= 2
        w = w - size * step
        before, loss = loss, _loss(features, targets, w)
        if before - loss < 1e-14:
            break
    return np.asarray(w / scale)


def _loss(features: np.ndarray, targets: np.ndarray, w: np.ndarray) -> float:
    z = features @ w
    return float(np.mean(np.logaddexp(0, z) - targets * z))


def sigmoid(z: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-z)), without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0, -z)))


def checked_array(arrays: dict[str, np.ndarray], name: str, size: int | None) -> np.ndarray:
    """Return an array of a saved calibrator: float64, finite, one-dimensional, of this size."""
    found = arrays.get(name)
    if found is None or found.dtype != np.float64 or found.ndim != 1:
        raise ModelFormatError(f"a calibrator must have the float64 array {name!r}")
    if (size is not None and len(found) != size) or not np.isfinite(found).all():
        raise ModelFormatError(f"array {name!r} of a calibrator has a wrong size or value")
    return found
