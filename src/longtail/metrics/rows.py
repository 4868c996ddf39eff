"""Row-wise metrics as ratios of sums over rows.

One form for means, normalised propensity scores and micro averages.

Every such metric is (sum_i w_i a_i) / (sum_i w_i b_i) with per-row terms a, b. Kept apart like
this, the terms give the value (all w_i = 1), and a bootstrap interval (w_i = how often row i was
drawn) without evaluating anything again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, cast

import numpy as np

from longtail.metrics.docstrings import with_parameters

__all__ = ["RowMetric", "Rows", "row_wise"]

P = ParamSpec("P")


@dataclass(frozen=True)
class Rows:
    """Per-row terms of a metric.

    ``numerator`` (n,) float64; ``denominator`` (n,) float64, or None for ones (the metric is a mean
    over rows); ``weights`` (n,), how much each row counts, or None for ones.

    >>> Rows(np.array([1.0, 0.0, 0.5])).value()
    0.5
    """

    numerator: np.ndarray
    denominator: np.ndarray | None = None
    weights: np.ndarray | None = None

    def value(self) -> float:
        """Return the ratio of the sums; 0 if the denominators add up to 0, as for no rows at
        all.
        """
        top = _weighted_sum(self.numerator, self.weights)
        if self.denominator is not None:
            bottom = _weighted_sum(self.denominator, self.weights)
        elif self.weights is not None:
            bottom = float(self.weights.sum())
        else:
            bottom = float(len(self.numerator))
        return top / bottom if bottom else 0.0


def _weighted_sum(values: np.ndarray, weights: np.ndarray | None) -> float:
    return float(values.sum() if weights is None else (values * weights).sum())


class RowMetric(Protocol, Generic[P]):
    """A metric function with its per-row terms: ``metric.rows(...)`` takes the same arguments."""

    rows: Callable[..., Rows]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> float: ...


def row_wise(terms: Callable[P, Rows]) -> RowMetric[P]:
    """Turn a function that returns per-row terms into a metric that returns their value."""

    @functools.wraps(terms)
    def metric(*args: P.args, **kwargs: P.kwargs) -> float:
        return terms(*args, **kwargs).value()

    as_any = cast(Any, metric)
    as_any.rows = terms
    as_any.__signature__ = inspect.signature(terms).replace(return_annotation="float")
    as_any.__annotations__ = {**terms.__annotations__, "return": float}
    return cast("RowMetric[P]", with_parameters(as_any))
