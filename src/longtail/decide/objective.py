"""Population utilities for Frank-Wolfe: a number, and its slopes, from the counts of all labels.

Counts are fractions t (true positives) and q (predicted), (L,) each; p (positives) is fixed. See
``utilities`` for the parametrisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._native import core
from longtail.decide.line_search import best_step
from longtail.decide.utilities import MICRO, Constants, LabelUtility, as_utility, cells, check_name

__all__ = ["Counts", "FreeObjective", "Objective", "make_objective"]


@dataclass(frozen=True)
class Counts:
    """True positives and predicted positives of every label, as fractions of the rows."""

    t: np.ndarray
    q: np.ndarray

    def toward(self, other: Counts, step: Any) -> Counts:
        """Return the mixture of this with a share ``step`` of the other; several as a column."""
        return Counts(self.t + step * (other.t - self.t), self.q + step * (other.q - self.q))


class Objective:
    """Psi(t, q) = (1 - w) * the mean utility of labels + w * precision at k.

    ``weight`` is w. A micro metric is the utility of one label whose counts are the means of all
    (``pooled``).
    """

    def __init__(
        self,
        utility: LabelUtility,
        p: np.ndarray,
        k: int | None,
        weight: float,
        constants: Constants,
        *,
        pooled: bool = False,
    ) -> None:
        self.utility, self.constants, self.pooled = utility, constants, pooled
        self.n_labels, self.p = len(p), self._pool(p)
        self.weight, self.per_hit = weight, weight / k if k and weight else 0.0

    def _pool(self, counts: np.ndarray) -> np.ndarray:
        return np.array([counts.mean()]) if self.pooled else counts

    def value(self, c: Counts) -> float:
        """Return Psi."""
        total = (1 - self.weight) * self._value(c) if self.weight < 1 else 0.0
        return total + self.per_hit * float(c.t.sum())

    def slope(self, c: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of Psi by t and by q, (L,) each."""
        if self.weight == 1:
            return np.full(self.n_labels, self.per_hit), np.zeros(self.n_labels)
        by_t, by_q = self._slope(c)
        return (1 - self.weight) * by_t + self.per_hit, (1 - self.weight) * by_q

    def search(self, start: Counts, end: Counts) -> tuple[float, float]:
        """Return the best step in [0, 1] from ``start`` toward ``end``, and what it gains."""
        ends = [self._pool(counts) for counts in (start.t, start.q, end.t, end.q)]
        share = (1 - self.weight) / len(self.p)
        per_hit = self.per_hit * (self.n_labels / len(self.p))
        if self.utility.native != "function":
            return core.line_step(  # type: ignore[no-any-return]
                self.utility.native,
                self.constants.beta2,
                self.constants.epsilon,
                *ends,
                self.p,
                share,
                per_hit,
                self.utility.concave,
            )
        moving = (start.t != end.t) | (start.q != end.q)
        if not moving.any():
            return 0.0, 0.0
        p, t, q, t_end, q_end = (counts[moving] for counts in (self.p, *ends))

        def at(steps: np.ndarray) -> np.ndarray:
            mixed = Counts(t, q).toward(Counts(t_end, q_end), steps[:, None])
            values = self.utility.value(
                mixed.t.ravel(), mixed.q.ravel(), np.tile(p, len(steps)), self.constants
            )
            total = share * values.reshape(mixed.t.shape).sum(axis=1)
            return np.asarray(total + per_hit * mixed.t.sum(axis=1))

        # A fine grid where few labels move; with many, their sum is smooth and a coarse one does.
        return best_step(at, n_grid=int(np.clip(20_000 // len(p), 16, 200)))

    def _value(self, c: Counts) -> float:
        """Return the utility without the share of precision."""
        t, q = self._pool(c.t), self._pool(c.q)
        return float(self.utility.value(t, q, self.p, self.constants).mean())

    def _slope(self, c: Counts) -> tuple[np.ndarray, np.ndarray]:
        t, q = self._pool(c.t), self._pool(c.q)
        by_t, by_q = self.utility.slope(t, q, self.p, self.constants)
        return (
            np.broadcast_to(by_t / self.n_labels, c.t.shape),
            np.broadcast_to(by_q / self.n_labels, c.q.shape),
        )


class FreeObjective(Objective):
    """One number from the whole confusion tensor, with the gradient supplied by the caller."""

    def __init__(
        self,
        function: Callable[..., Any],
        gradient: Callable[..., Any],
        p: np.ndarray,
        k: int | None,
        weight: float,
    ) -> None:
        super().__init__(as_utility(function), p, k, weight, Constants())
        self.function, self.gradient = function, gradient

    def search(self, start: Counts, end: Counts) -> tuple[float, float]:
        return best_step(
            lambda steps: np.array([self.value(start.toward(end, float(x))) for x in steps])
        )

    def _value(self, c: Counts) -> float:
        value = np.asarray(self.function(*cells(c.t, c.q, self.p)), dtype=np.float64)
        if value.size != 1 or not np.isfinite(value).all():
            raise ValueError("a metric with gradient= must return one finite number")
        return float(value.reshape(-1)[0])

    def _slope(self, c: Counts) -> tuple[np.ndarray, np.ndarray]:
        parts = self.gradient(*cells(c.t, c.q, self.p))
        if len(parts) != 4:
            raise ValueError("gradient must return four arrays: by tp, fp, fn and tn")
        by_tp, by_fp, by_fn, by_tn = (
            np.broadcast_to(np.asarray(part, dtype=np.float64), c.t.shape) for part in parts
        )
        return by_tp - by_fp - by_fn + by_tn, by_fp - by_tn


def make_objective(
    metric: str | Callable[..., Any],
    gradient: Callable[..., Any] | None,
    p: np.ndarray,
    k: int | None,
    weight: float,
    constants: Constants,
) -> Objective:
    """Return the objective of a name, a label-wise function, or a function with its gradient."""
    if isinstance(metric, str):
        check_name(metric, micro=True)
        utility = as_utility("macro_recall" if metric == "precision" else metric)
        return Objective(utility, p, k, weight, constants, pooled=metric in MICRO)
    if gradient is not None and callable(metric):
        return FreeObjective(metric, gradient, p, k, weight)
    return Objective(as_utility(metric), p, k, weight, constants)
