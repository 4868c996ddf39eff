"""Every metric of the catalogue at every k, with as many resamples as can be afforded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from longtail import metrics
from longtail._validation import as_k
from longtail.report.catalogue import CATALOGUE

__all__ = ["Measurement", "as_ks", "measure", "values_of"]

# What a resample costs, in elementary steps: a pass over the rows for each metric of rows; a pass
# over answers, positives and all labels for metrics of labels, which are slower by far. Each budget
# is worth about ten seconds. Beyond it fewer resamples are drawn: on so many rows the interval is
# narrow anyway.
_ROW_BUDGET, _FEWEST_FOR_ROWS = 4_000_000_000, 100
_LABEL_BUDGET, _FEWEST_FOR_LABELS = 200_000_000, 50


@dataclass(frozen=True)
class Measurement:
    """One metric at one k: a fraction, and the ends of its interval where one was made."""

    symbol: str
    k: int
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def name(self) -> str:
        """Such as ``P@1``."""
        return f"{self.symbol}@{self.k}"


def as_ks(k: Any) -> tuple[int, ...]:
    """Return one cut-off or several, as ascending whole numbers."""
    values = [k] if np.ndim(k) == 0 else list(k)
    if not values:
        raise ValueError("k is empty: give at least one cut-off, such as k=5")
    return tuple(sorted({as_k(value) for value in values}))


def measure(
    matches: metrics.Matches,
    ks: tuple[int, ...],
    propensity: Any,
    n_resamples: int,
    confidence: float,
    seed: int,
    n_jobs: int | None,
) -> tuple[dict[str, Measurement], dict[str, int]]:
    """Return measurements by name, and how many resamples were drawn for each kind of metric."""
    n_resamples = as_k(n_resamples, "n_resamples") if n_resamples != 0 else 0
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    entries = [e for e in CATALOGUE if propensity is not None or not e.needs_propensity]
    calls = {f"{e.symbol}@{k}": (e, k, e.call(k, propensity)) for e in entries for k in ks}
    by_label = {name: call for name, (e, _, call) in calls.items() if e.is_label_wise}
    by_row = {name: call for name, (e, _, call) in calls.items() if not e.is_label_wise}
    for_rows = _for_rows(matches, len(by_row), n_resamples)
    for_labels = _for_labels(matches, len(by_label), n_resamples)
    bootstrap = partial(
        metrics.bootstrap_intervals, confidence=confidence, random_state=seed, n_jobs=n_jobs
    )
    intervals = bootstrap(by_row, None, matches, n_resamples=for_rows) if for_rows else {}
    if for_labels:
        intervals |= bootstrap(by_label, None, matches, n_resamples=for_labels)
    out = {}
    for name, (e, k, call) in calls.items():
        if name in intervals:
            found = intervals[name]
            out[name] = Measurement(e.symbol, k, found.estimate, found.low, found.high)
        else:
            out[name] = Measurement(e.symbol, k, float(call(None, matches)))
    return out, {"n_resamples": for_rows, "n_resamples_by_label": for_labels}


def values_of(names: Iterable[str], matches: metrics.Matches, p: Any = None) -> dict[str, float]:
    """Return the values of metrics of the catalogue, by names such as ``P@1``."""
    entries = {entry.symbol: entry for entry in CATALOGUE}
    out = {}
    for name in names:
        symbol, _, k = name.rpartition("@")
        out[name] = float(entries[symbol].call(int(k), p)(None, matches))
    return out


def _for_rows(matches: metrics.Matches, n_metrics: int, wanted: int) -> int:
    affordable = _ROW_BUDGET // (matches.n_rows * 2 * n_metrics)  # numerator and denominator
    return min(wanted, max(affordable, _FEWEST_FOR_ROWS))


def _for_labels(matches: metrics.Matches, n_metrics: int, wanted: int) -> int:
    steps = matches.truth.nnz + matches.gains.size + n_metrics * matches.n_labels
    affordable = int(_LABEL_BUDGET // steps)
    return min(wanted, affordable) if affordable >= _FEWEST_FOR_LABELS else 0
