"""Population utilities for Frank-Wolfe: a number, and its slopes, from the counts of all labels.

Counts are fractions t (true positives) and q (predicted), (L,) each; p (positives) is fixed. See
``utilities`` for the parametrisation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._native import core
from longtail.decide.line_search import best_step
from longtail.decide.utilities import MACRO, MICRO, Constants, LabelUtility, utility_names

__all__ = ["Counts", "Objective", "make_objective"]


@dataclass(frozen=True)
class Counts:
    """True positives and predicted positives of every label, as fractions of the rows."""

    t: np.ndarray
    q: np.ndarray

    def toward(self, other: Counts, step: float) -> Counts:
        """Return the mixture of this with a share ``step`` of the other."""
        return Counts(self.t + step * (other.t - self.t), self.q + step * (other.q - self.q))


class Objective(ABC):
    """Psi(t, q) = (1 - w) * utility + w * precision at k."""

    concave = False

    def __init__(self, p: np.ndarray, k: int | None, precision_weight: float) -> None:
        self.p = p
        self.weight = precision_weight
        self.per_hit = precision_weight / k if k and precision_weight else 0.0

    def value(self, c: Counts) -> float:
        total = (1 - self.weight) * self._value(c.t, c.q, self.p) if self.weight < 1 else 0.0
        return total + self.per_hit * float(c.t.sum())

    def slope(self, c: Counts) -> tuple[np.ndarray, np.ndarray]:
        if self.weight == 1:
            return np.full_like(self.p, self.per_hit), np.zeros_like(self.p)
        by_t, by_q = self._slope(c.t, c.q, self.p)
        return (1 - self.weight) * by_t + self.per_hit, (1 - self.weight) * by_q

    def search(self, start: Counts, end: Counts) -> tuple[float, float]:
        """Return the best step in [0, 1] from ``start`` toward ``end``, and what it gains."""
        return best_step(
            lambda steps: np.array([self.value(start.toward(end, float(x))) for x in steps]),
            concave=self.concave,
        )

    @abstractmethod
    def _value(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> float:
        """Return the utility without the share of precision."""

    @abstractmethod
    def _slope(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Its slopes by t and by q."""


class MacroObjective(Objective):
    """The mean over labels of a named utility, or of a function with one value per label."""

    def __init__(
        self,
        utility: LabelUtility | Callable[..., Any],
        p: np.ndarray,
        k: int | None,
        precision_weight: float,
        constants: Constants,
    ) -> None:
        super().__init__(p, k, precision_weight)
        self.utility, self.constants = utility, constants
        self.concave = isinstance(utility, LabelUtility) and utility.concave

    def search(self, start: Counts, end: Counts) -> tuple[float, float]:
        """Look only at labels whose counts move; named utilities are searched in one call."""
        if isinstance(self.utility, LabelUtility):
            return core.line_step(  # type: ignore[no-any-return]
                self.utility.native,
                self.constants.beta2,
                self.constants.epsilon,
                start.t,
                start.q,
                end.t,
                end.q,
                self.p,
                (1 - self.weight) / len(self.p),
                self.per_hit,
                self.concave,
            )
        moving = (start.t != end.t) | (start.q != end.q)
        if not moving.any():
            return 0.0, 0.0
        a, b = Counts(start.t[moving], start.q[moving]), Counts(end.t[moving], end.q[moving])
        p = self.p[moving]

        def at(steps: np.ndarray) -> np.ndarray:
            t = a.t + steps[:, None] * (b.t - a.t)
            q = a.q + steps[:, None] * (b.q - a.q)
            values = self._values(t.ravel(), q.ravel(), np.tile(p, len(steps))).reshape(t.shape)
            total = (1 - self.weight) / len(self.p) * values.sum(axis=1)
            return np.asarray(total + self.per_hit * t.sum(axis=1))

        # A fine grid where few labels move; with many, their sum is smooth and a coarse one does.
        return best_step(at, concave=self.concave, n_grid=int(np.clip(20_000 // len(p), 16, 200)))

    def _values(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        if isinstance(self.utility, LabelUtility):
            return self.utility.value(t, q, p, self.constants)
        cells = (t, np.maximum(q - t, 0), np.maximum(p - t, 0), np.maximum(1 - q - p + t, 0))
        values = np.asarray(self.utility(*cells), dtype=np.float64)
        if values.shape != t.shape:
            raise ValueError(
                f"the metric must return one value per label, shape {t.shape}, got {values.shape}; "
                "one number for all labels needs gradient="
            )
        if not np.isfinite(values).all():
            raise ValueError("the metric returned NaN or infinity: guard its divisions by zero")
        return values

    def _value(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> float:
        return float(self._values(t, q, p).mean())

    def _slope(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.utility, LabelUtility):
            by_t, by_q = self.utility.slope(t, q, p, self.constants)
        else:
            by_t, by_q = self._differences(t, q, p)
        return by_t / len(p), by_q / len(p)

    def _differences(
        self, t: np.ndarray, q: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Slopes by finite differences that stay inside 0 <= t <= min(p, q), q <= 1 - p + t."""
        q = np.maximum(q, self.constants.floor)
        h = 1e-6 * np.maximum(self.constants.floor, np.minimum(p, q))
        low, high = np.maximum(t - h, 0), np.minimum(t + h, np.minimum(p, q))
        rise = self._values(high, q, p) - self._values(low, q, p)
        by_t = np.divide(rise, high - low, out=np.zeros_like(t), where=high > low)
        low, high = np.maximum(q - h, t), np.minimum(q + h, 1 - p + t)
        rise = self._values(t, high, p) - self._values(t, low, p)
        return by_t, np.divide(rise, high - low, out=np.zeros_like(t), where=high > low)


class MicroObjective(Objective):
    """A named utility of the counts summed over labels."""

    def __init__(
        self,
        utility: LabelUtility,
        p: np.ndarray,
        k: int | None,
        precision_weight: float,
        constants: Constants,
    ) -> None:
        super().__init__(p, k, precision_weight)
        self.utility, self.constants, self.concave = utility, constants, utility.concave

    def _pooled(
        self, t: np.ndarray, q: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.array([t.mean()]), np.array([q.mean()]), np.array([p.mean()])

    def _value(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> float:
        return float(self.utility.value(*self._pooled(t, q, p), self.constants)[0])

    def _slope(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        by_t, by_q = self.utility.slope(*self._pooled(t, q, p), self.constants)
        return np.full_like(t, by_t[0] / len(t)), np.full_like(q, by_q[0] / len(t))


class FreeObjective(Objective):
    """One number from the whole confusion tensor, with the gradient supplied by the caller."""

    def __init__(
        self,
        function: Callable[..., Any],
        gradient: Callable[..., Any],
        p: np.ndarray,
        k: int | None,
        precision_weight: float,
    ) -> None:
        super().__init__(p, k, precision_weight)
        self.function, self.gradient = function, gradient

    @staticmethod
    def _cells(t: np.ndarray, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, ...]:
        return t, np.maximum(q - t, 0), np.maximum(p - t, 0), np.maximum(1 - q - p + t, 0)

    def _value(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> float:
        value = np.asarray(self.function(*self._cells(t, q, p)), dtype=np.float64)
        if value.size != 1 or not np.isfinite(value).all():
            raise ValueError("a metric with gradient= must return one finite number")
        return float(value.reshape(-1)[0])

    def _slope(self, t: np.ndarray, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [np.broadcast_to(g, t.shape) for g in self.gradient(*self._cells(t, q, p))]
        if len(parts) != 4:
            raise ValueError("gradient must return four arrays: by tp, fp, fn and tn")
        by_tp, by_fp, by_fn, by_tn = (np.asarray(g, dtype=np.float64) for g in parts)
        return by_tp - by_fp - by_fn + by_tn, by_fp - by_tn


def make_objective(
    metric: str | Callable[..., Any],
    gradient: Callable[..., Any] | None,
    p: np.ndarray,
    k: int | None,
    precision_weight: float,
    constants: Constants,
) -> Objective:
    """Return the objective of a name, a label-wise function, or a function with its gradient."""
    if metric == "precision":
        linear = MACRO["macro_recall"]
        return MacroObjective(linear, p, k, 1.0, constants)
    if isinstance(metric, str):
        if metric in MACRO:
            return MacroObjective(MACRO[metric], p, k, precision_weight, constants)
        if metric in MICRO:
            return MicroObjective(MICRO[metric], p, k, precision_weight, constants)
        known = ", ".join(utility_names(micro=True))
        hint = " (coverage is no function of the counts: use BlockCoordinateAscent)"
        raise ValueError(
            f"unknown metric {metric!r}{hint if metric == 'coverage' else ''}: use one of {known}, "
            "or a function of (tp, fp, fn, tn)"
        )
    if not callable(metric):
        raise TypeError(f"metric must be a name or a function of (tp, fp, fn, tn), got {metric!r}")
    if gradient is not None:
        return FreeObjective(metric, gradient, p, k, precision_weight)
    return MacroObjective(metric, p, k, precision_weight, constants)
