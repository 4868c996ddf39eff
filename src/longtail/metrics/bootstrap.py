"""Confidence intervals: how much a metric would vary with another test set of the same size.

Rows are drawn with replacement, as many as there are, ``n_resamples`` times; the metric's values on
these resamples give the interval. Rows are taken as independent; labels and the model are fixed. So
it says nothing about another training run.

Three kinds of metric, three costs for n rows, B resamples:

- row-wise ones (they have ``.rows``: P, R, nDCG, PSP, micro P, ...): their per-row terms are
  computed once and summed by a native kernel, all metrics of a call in one pass, O(B n) additions;
- label-wise ones (macro means, coverage): confusion counts are made again for every resample,
  O(B (n k + nnz(Y)));
- any other function ``f(Y_true, top)``: called on resampled rows, O(B) calls.

B. Efron and R. Tibshirani, "An introduction to the bootstrap", 1993.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._native import core, n_threads
from longtail._validation import as_k, as_seed
from longtail.metrics.confusion import ratio
from longtail.metrics.conventions import convention
from longtail.metrics.matches import Matches
from longtail.metrics.matching import match
from longtail.metrics.rows import Rows

__all__ = ["Interval", "bootstrap_interval", "bootstrap_intervals"]


@dataclass(frozen=True)
class Interval:
    """A value, its confidence interval, and its standard deviation over resamples."""

    estimate: float
    low: float
    high: float
    std_error: float
    confidence: float
    n_resamples: int

    def __str__(self) -> str:
        return f"{self.estimate:.4f} [{self.low:.4f}, {self.high:.4f}]"


def bootstrap_interval(
    metric: Callable[..., float],
    Y_true: Any,
    top: Any,
    *args: Any,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
    n_jobs: int | None = None,
    **options: Any,
) -> Interval:
    """Return the confidence interval of one metric: ``metric(Y_true, top, *args, **options)``.

    Same seed, same interval, for any number of threads. See ``bootstrap_intervals`` for how the
    interval is made, and for many metrics at the price of one.

    Parameters
    ----------
    metric : callable
        ``metric(Y_true, top, *args, **options)``.
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    *args : object
        Further arguments of the metric.
    n_resamples : int, default=1000
        Resamples of the bootstrap.
    confidence : float, default=0.95
        Share of resamples that the interval holds.
    random_state : int, Generator or None, default=0
        Seed.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.
    **options : object
        Options of the metric.

    >>> from longtail.metrics import precision_at_k
    >>> scores = np.eye(4)[[0, 1, 2, 2]]
    >>> print(bootstrap_interval(precision_at_k, [[0], [1], [2], [3]], scores, k=1))
    0.7500 [0.2500, 1.0000]
    """
    return bootstrap_intervals(
        {"": _Call(metric, args, options)},
        Y_true,
        top,
        n_resamples=n_resamples,
        confidence=confidence,
        random_state=random_state,
        n_jobs=n_jobs,
    )[""]


def bootstrap_intervals(
    metrics: Mapping[str, Callable[..., float]],
    Y_true: Any,
    top: Any,
    *,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> dict[str, Interval]:
    """Return confidence intervals of several metrics, from the same resamples.

    ``metrics`` maps names to functions of ``(Y_true, top)``; ``functools.partial`` fixes their
    other arguments by keyword. The interval holds the middle ``confidence`` of the values on
    resamples (percentile method).

    Label-wise metrics fall when rows are resampled, whatever the model: a label whose only test row
    is not drawn (37 % of the time) scores 0. Their values on resamples are therefore moved so that
    their mean is the estimate, and cut to [0, 1]. Where most labels have one or two test rows, take
    such an interval as rough.

    Parameters
    ----------
    metrics : mapping of str to callable
        Metrics by name, called as ``metric(Y_true, top)``.
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    n_resamples : int, default=1000
        Resamples of the bootstrap.
    confidence : float, default=0.95
        Share of resamples that the interval holds.
    random_state : int, Generator or None, default=0
        Seed.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.

    >>> from functools import partial
    >>> from longtail.metrics import macro_recall_at_k, precision_at_k
    >>> metrics = {"P@1": partial(precision_at_k, k=1), "R@1": partial(macro_recall_at_k, k=1)}
    >>> scores = np.eye(4)[[0, 1, 2, 2]]
    >>> found = bootstrap_intervals(metrics, [[0], [1], [2], [3]], scores, n_resamples=200)
    >>> [round(interval.estimate, 2) for interval in found.values()]
    [0.75, 0.75]
    """
    n_resamples = as_k(n_resamples, "n_resamples")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    seed = as_seed(random_state)
    calls = {name: _Call.of(metric) for name, metric in metrics.items()}
    depths = [call.depth() for call in calls.values()]
    deepest = None if None in depths else max((d for d in depths if d), default=1)
    matches = match(Y_true, top, deepest, n_jobs=n_jobs)
    # Estimates first: the sums along rows that they leave in `matches` serve every resample.
    estimates = {name: call.on(matches) for name, call in calls.items()}
    resampled = _resample_rows(calls, matches, n_resamples, seed, n_jobs)
    others = {name: call for name, call in calls.items() if name not in resampled}
    resampled |= _resample_others(others, matches, n_resamples, seed)
    out = {}
    for name, estimate in estimates.items():
        values = resampled[name]
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        if hasattr(calls[name].function, "reweightable"):
            values = np.clip(values + (estimate - values.mean()), 0.0, 1.0)
        low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
        out[name] = Interval(estimate, float(low), float(high), spread, confidence, n_resamples)
    return out


@dataclass(frozen=True)
class _Call:
    """A metric with its arguments beyond ``(Y_true, top)``."""

    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any]

    @classmethod
    def of(cls, metric: Any) -> _Call:
        if isinstance(metric, functools.partial) and not metric.args:
            return cls(metric.func, (), dict(metric.keywords))
        return metric if isinstance(metric, cls) else cls(metric, (), {})

    @property
    def takes_matches(self) -> bool:
        """Whether this is a metric of this library, row-wise or label-wise."""
        return hasattr(self.function, "rows") or hasattr(self.function, "reweightable")

    def __call__(self, Y_true: Any, top: Any) -> float:
        return float(self.function(Y_true, top, *self.args, **self.options))

    def on(self, matches: Matches) -> float:
        return self(None, matches) if self.takes_matches else self(matches.truth, matches.top)

    def depth(self) -> int | None:
        """Return how deep a ranking this needs; None for all of it."""
        if not self.takes_matches:
            return None
        bound = inspect.signature(self.function).bind(None, None, *self.args, **self.options)
        bound.apply_defaults()
        ties = convention(bound.arguments["compat"]).average_ties
        return None if ties else as_k(bound.arguments["k"])


def _resample_rows(
    calls: dict[str, _Call], matches: Matches, n_resamples: int, seed: int, n_jobs: int | None
) -> dict[str, np.ndarray]:
    """Return values (B,) of row-wise metrics on every resample."""
    rows: dict[str, Rows] = {
        name: call.function.rows(None, matches, *call.args, **call.options)
        for name, call in calls.items()
        if hasattr(call.function, "rows")
    }
    if not rows:
        return {}
    pairs = [(each.numerator, each.denominator) for each in rows.values()]
    terms = np.stack([term for pair in pairs for term in pair if term is not None], axis=1)
    sums = iter(core.resample_sums(terms, n_resamples, seed, n_threads(n_jobs)).T)
    return {
        name: ratio(next(sums), matches.n_rows if each.denominator is None else next(sums))
        for name, each in rows.items()
    }


def _resample_others(
    calls: dict[str, _Call], matches: Matches, n_resamples: int, seed: int
) -> dict[str, np.ndarray]:
    """Return values (B,) of the other metrics on every resample."""
    values = {name: np.empty(n_resamples) for name in calls}
    for b in range(n_resamples if calls else 0):
        counts = core.resample_counts(matches.n_rows, seed, b)
        weighted, drawn = matches.reweighted(counts), None
        for name, call in calls.items():
            if call.takes_matches:
                values[name][b] = call.on(weighted)
                continue
            if drawn is None:
                rows = np.repeat(np.arange(matches.n_rows), counts)
                drawn = matches.truth[rows], matches.top[rows]
            values[name][b] = call(*drawn)
    return values
