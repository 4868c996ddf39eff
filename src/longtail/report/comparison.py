"""Several reports side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longtail.report.catalogue import LESS_IS_BETTER, grouped
from longtail.report.formatting import align, per_cent
from longtail.report.measure import Measurement
from longtail.report.summary import Report

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, repr=False)
class Comparison:
    """Reports of several models on the same test set. Printing it gives a table.

    ``best`` maps ``P@1`` to the names of the best model and of those whose interval overlaps the
    best one's: such a lead may be chance. (Two models can differ for certain although their
    intervals overlap; the mark errs towards caution.)
    """

    reports: dict[str, Report]
    metrics: tuple[str, ...]
    best: dict[str, tuple[str, ...]]

    def __str__(self) -> str:
        rows = [["", *self.reports]]
        for heading, entries in grouped(self.metrics):
            rows.append([heading])
            for metric in (name for _, names in entries for name in names):
                rows.append([f"  {metric}", *(self._cell(metric, name) for name in self.reports)])
        return align(rows) + "\n* best, or not told apart from the best by its interval"

    __repr__ = __str__

    def _cell(self, metric: str, name: str) -> str:
        return per_cent(self.reports[name][metric]) + ("*" if name in self.best[metric] else " ")

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values: ``{"P@1": {"model": value, ...}, ...}`` and who is best."""
        return {
            "models": list(self.reports),
            "metrics": {m: {n: r[m] for n, r in self.reports.items()} for m in self.metrics},
            "best": {m: list(names) for m, names in self.best.items()},
        }


def compare(reports: Mapping[str, Report]) -> Comparison:
    """Set reports side by side: the metrics they all have, and which model is best at each.

    Refuses reports on different test sets, or with other propensities, whose numbers do not
    compare.

    Parameters
    ----------
    reports : mapping of str to Report
        Reports by name, on the same rows.

    >>> import numpy as np
    >>> from longtail.report import evaluate
    >>> good, bad = np.eye(3), np.roll(np.eye(3), 1, axis=0)
    >>> made = {name: evaluate([[0], [1], [2]], top, k=1, n_resamples=0)
    ...         for name, top in {"good": good, "bad": bad}.items()}
    >>> compare(made).best["P@1"]
    ('good',)
    """
    if not reports:
        raise ValueError("there are no reports to compare")
    first = next(iter(reports.values()))
    for name, report in reports.items():
        if report.facts.fingerprint != first.facts.fingerprint:
            raise ValueError(f"the report {name!r} was made on another test set than the first")
        if report.propensity != first.propensity and report.propensity and first.propensity:
            raise ValueError(f"the report {name!r} was made with other propensities than the first")
    shared = tuple(m for m in first if all(m in report.metrics for report in reports.values()))
    best = {m: _best(m, {name: r.metrics[m] for name, r in reports.items()}) for m in shared}
    return Comparison(dict(reports), shared, best)


def _best(metric: str, values: Mapping[str, Measurement]) -> tuple[str, ...]:
    sign = -1.0 if metric.rpartition("@")[0] in LESS_IS_BETTER else 1.0
    leader = max(values.values(), key=lambda m: sign * m.value)
    return tuple(
        name for name, m in values.items() if m.value == leader.value or _overlap(m, leader)
    )


def _overlap(a: Measurement, b: Measurement) -> bool:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    return a.low <= b.high and b.low <= a.high
