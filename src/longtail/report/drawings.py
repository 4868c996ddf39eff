"""The charts of a report: what is drawn from which numbers."""

from __future__ import annotations

from collections.abc import Callable

from longtail.report.calibration import reliability_chart
from longtail.report.charts import Series, bar_chart, line_chart
from longtail.report.slices import Bin
from longtail.report.summary import Report
from longtail.report.table import count_range, per_cent

__all__ = ["section"]

_WHISKERS = "Whiskers are confidence intervals, where they were made; macro-F1 is over all labels."
_LINES = ("P", "R", "nDCG", "PSP", "macro-F1")


def section(report: Report) -> str:
    """Return metrics by k, recall and contribution from head to tail, and label coverage."""
    figures = [_by_k(report)]
    if report.bins:
        figures += [
            _by_bin(
                report,
                "Positives found, head to tail",
                lambda b: b.recall,
                "Share of each bin's positives that are among the first k answers.",
            ),
            _by_bin(
                report,
                "Label coverage, head to tail",
                lambda b: b.coverage,
                "Share of each bin's labels present in the test rows that are answered rightly at "
                "least once.",
            ),
            _by_bin(
                report,
                "Where precision comes from",
                lambda b: b.contribution,
                "The bars of one k add up to P@k.",
            ),
        ]
    if report.rules:
        figures += [
            _by_rule(report, "Positives found, by rule", lambda b: b.recall),
            _by_rule(report, "Label coverage, by rule", lambda b: b.coverage),
        ]
    if report.calibration is not None:
        found = report.calibration
        figures.append(
            _figure(
                "Reliability",
                reliability_chart(found),
                f"Share of right answers over their probability, {len(found.counts)} bins of equal "
                f"mass. Expected calibration error: {per_cent(found.error)} %.",
            )
        )
    return (
        '<section><h2>At a glance</h2><div class="charts">' + "".join(figures) + "</div></section>"
    )


def _by_k(report: Report) -> str:
    series = []
    for symbol in _LINES:
        if f"{symbol}@{report.ks[0]}" in report:
            found = [report.metrics[f"{symbol}@{k}"] for k in report.ks]
            series.append(
                Series(
                    symbol,
                    [m.value for m in found],
                    [m.low for m in found],
                    [m.high for m in found],
                )
            )
    title = "Metrics by k"
    drawing = line_chart(title, [f"@{k}" for k in report.ks], series)
    return _figure(title, drawing, _WHISKERS)


def _by_bin(
    report: Report, title: str, pick: Callable[[Bin], dict[int, float]], caption: str
) -> str:
    source = "training" if report.settings["bins_from"] == "train" else "test"
    series = [Series(f"k = {k}", [pick(b)[k] for b in report.bins]) for k in report.ks]
    notes = [count_range(b.min_count, b.max_count, compact=True) for b in report.bins]
    drawing = bar_chart(title, [b.name for b in report.bins], notes, series)
    return _figure(title, drawing, f"{caption} Below each bin: {source} examples per label.")


def _by_rule(report: Report, title: str, pick: Callable[[Bin], dict[int, float]]) -> str:
    k = max(report.ks)
    series = [Series(rule.name, [pick(b)[k] for b in rule.bins]) for rule in report.rules]
    notes = [count_range(b.min_count, b.max_count, compact=True) for b in report.bins]
    drawing = bar_chart(title, [b.name for b in report.bins], notes, series)
    return _figure(title, drawing, f"The same at k = {k}, for every decision rule.")


def _figure(title: str, drawing: str, caption: str) -> str:
    return f"<figure><h3>{title}</h3>{drawing}<figcaption>{caption}</figcaption></figure>"
