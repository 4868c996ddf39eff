"""A report as text and as a web page: what the templates show of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from longtail.report import table
from longtail.report.catalogue import OVER, grouped
from longtail.report.charts import Series, bar_chart, line_chart, reliability_chart
from longtail.report.formatting import count_range, propensity_line
from longtail.report.summary import Report

__all__ = ["origin", "shown"]

_LINES = ("P", "R", "nDCG", "PSP", "macro-F1")


def shown(report: Report) -> dict[str, Any]:
    """Return what the templates of a report see."""
    return {
        "title": report.title,
        "report": report,
        "k": max(report.ks),
        "interval_name": _interval_name(report),
        "over": OVER,
        "rows": table,
        "by_k": _by_k,
        "by_bin": _by_bin,
        "reliability_chart": reliability_chart,
        "propensity_line": propensity_line,
        "grouped": grouped,
        "origin": origin,
        "sortable": bool(report.labels),
    }


def _interval_name(report: Report) -> str:
    """Return what intervals are called, such as ``95% bootstrap intervals``; empty without any."""
    if all(m.low is None for m in report.metrics.values()):
        return ""
    return f"{100 * report.settings['confidence']:g}% bootstrap intervals"


def _by_k(report: Report, title: str) -> str:
    """Return the chart of metrics over k."""
    lines = []
    for symbol in _LINES:
        names = [f"{symbol}@{k}" for k in report.ks]
        if names[0] in report.metrics:
            by_k = [report.metrics[name] for name in names]
            ends = ([m.low for m in by_k], [m.high for m in by_k])
            lines.append(Series(symbol, [m.value for m in by_k], *ends))
    return line_chart(title, [f"@{k}" for k in report.ks], lines)


def _by_bin(report: Report, title: str, of: str, *, by_rule: bool = False) -> str:
    """Return the chart of a field of ``Bin`` from head to tail: for every k, or for every decision
    rule at the largest.
    """
    k = max(report.ks)
    if by_rule:
        series = [Series(r.name, [getattr(b, of)[k] for b in r.bins]) for r in report.rules]
    else:
        series = [Series(f"k = {k}", [getattr(b, of)[k] for b in report.bins]) for k in report.ks]
    notes = [count_range(b.min_count, b.max_count, compact=True) for b in report.bins]
    return bar_chart(title, [b.name for b in report.bins], notes, series)


def origin(made: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield when, by which command and of which file something was made, where that is known."""
    made = made or {}
    data = made.get("data")
    data = data if isinstance(data, Mapping) else {}
    seconds = made.get("seconds")
    versions = [f"{name} {made[name]}" for name in ("python", "numpy", "scipy") if name in made]
    pairs = {
        "Date": made.get("created"),
        "Command": made.get("command"),
        "Data": data.get("path"),
        "SHA-256 of the data": data.get("sha256"),
        "Seconds of training": f"{seconds:,.1f}" if isinstance(seconds, (int, float)) else None,
        "With": ", ".join(versions),
    }
    yield from ((name, str(value)) for name, value in pairs.items() if value)
