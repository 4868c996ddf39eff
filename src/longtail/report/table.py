"""A report as aligned text, for terminals and logs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from longtail.report.catalogue import CATALOGUE, GROUPS
from longtail.report.measure import Measurement

if TYPE_CHECKING:  # which imports this module for its numbers
    from longtail.report.summary import Report

__all__ = [
    "bin_rows",
    "bins_from",
    "align",
    "bullet",
    "count_range",
    "interval_name",
    "per_cent",
    "printable",
    "propensity_line",
    "text",
]

_WIDTH = 96
_JOINERS = "\u200c\u200d"


def text(report: Report) -> str:
    """Return the whole report, at most about 100 columns wide for three values of k."""
    parts = [_head(report), _metrics(report), _bins(report), _rules(report), _parts(report)]
    parts.append(_calibration(report))
    if report.warnings:
        parts.append(_warnings(report))
    return "\n\n".join(part for part in parts if part)


def _head(report: Report) -> str:
    facts = report.facts
    lines = [
        printable(report.title),
        f"{facts.n_rows:,} rows, {facts.n_labels:,} labels "
        f"({facts.present_labels:,} of them in the test set), "
        f"{facts.labels_per_row:.2f} labels per row",
    ]
    if report.measured_on:
        lines += textwrap.wrap(f"Measured on {printable(report.measured_on)}", _WIDTH)
    if report.propensity is not None:
        lines.append(f"Propensities: {propensity_line(report.propensity)}")
    if facts.n_filters is not None:
        lines.append(f"Filter pairs: {facts.n_filters:,}")
    if any(m.low is not None for m in report.metrics.values()):
        lines.append(f"In per cent, with {interval_name(report)}")
    else:
        lines.append("In per cent")
    return "\n".join(lines)


def interval_name(report: Report) -> str:
    """Return what intervals are called, such as ``95% bootstrap intervals``."""
    return f"{100 * report.settings['confidence']:g}% bootstrap intervals"


def _metrics(report: Report) -> str:
    rows: list[list[str]] = [["", *(f"@{k}" for k in report.ks)]]
    for group, heading in GROUPS.items():
        entries = [e for e in CATALOGUE if e.group == group and _has(report, e.symbol)]
        if entries:
            rows.append([heading])
        for entry in entries:
            found = [report.metrics[f"{entry.symbol}@{k}"] for k in report.ks]
            rows.append([f"  {entry.symbol}", *(_cell(m) for m in found)])
    return align(rows)


def _has(report: Report, symbol: str) -> bool:
    return f"{symbol}@{report.ks[0]}" in report.metrics


def _cell(m: Measurement) -> str:
    value = per_cent(m.value)
    if m.low is None or m.high is None:
        return value
    return f"{value} [{per_cent(m.low)}, {per_cent(m.high)}]"


def _bins(report: Report) -> str:
    if not report.bins:
        return ""
    heading = f"Head to tail: labels by {bins_from(report)} frequency"
    return f"{heading}, in bins of about equal volume\n{align(bin_rows(report))}"


def bins_from(report: Report) -> str:
    """Return which rows the bins were made by: training or test."""
    return "training" if report.settings["bins_from"] == "train" else "test"


def bin_rows(report: Report) -> list[list[str]]:
    """Return the names of the columns, then the cells of every bin, from head to tail."""
    k = max(report.ks)
    rows = [
        [
            "bin",
            "labels",
            f"{bins_from(report)} count",
            "positives",
            f"R@{k}",
            f"coverage present@{k}",
            f"part of P@{k}",
        ]
    ]
    for b in report.bins:
        rows.append(
            [
                b.name,
                f"{b.n_labels:,}",
                count_range(b.min_count, b.max_count),
                f"{b.n_positives:,.0f}",
                per_cent(b.recall[k]),
                per_cent(b.coverage[k]),
                per_cent(b.contribution[k]),
            ]
        )
    return rows


def _rules(report: Report) -> str:
    if not report.rules:
        return ""
    k = max(report.ks)
    bins = report.rules[0].bins
    rows = [["", f"P@{k}", f"macro-F1@{k}", f"coverage@{k}", *(f"R {b.name}" for b in bins)]]
    for rule in report.rules:
        values = [rule.metrics[f"{symbol}@{k}"] for symbol in ("P", "macro-F1", "coverage")]
        values += [b.recall[k] for b in rule.bins]
        rows.append([f"  {printable(rule.name)}", *(per_cent(v) for v in values)])
    lines = [f"Decision rules, over all labels, and the recall of each bin at {k}", align(rows)]
    lines += [
        textwrap.fill(printable(rule.sentence), _WIDTH, initial_indent="  ", subsequent_indent="  ")
        for rule in report.rules[1:]
    ]
    return "\n".join(lines)


def _parts(report: Report) -> str:
    if not report.parts:
        return ""
    names = list(report.parts[0].alone)
    rows = [["", *names, "without it:", *names]]
    for part in report.parts:
        values = [per_cent(part.alone[name]) for name in names]
        left = [per_cent(part.without[name]) if part.without else "" for name in names]
        rows.append([f"  {printable(part.name)}", *values, "", *left])
    return "\n".join(["Parts of the model: each alone, and the whole without it", align(rows)])


def _calibration(report: Report) -> str:
    found = report.calibration
    if found is None:
        return ""
    rows = [["", "pairs", "mean probability", "right", "calibration error"]]
    for group in found.groups:
        values = (group.proba, group.hit_rate, group.error)
        rows.append([f"  {group.name}", f"{group.n_pairs:,}", *(per_cent(v) for v in values)])
    heading = (
        f"Probabilities of the first {found.k} answers: expected calibration error "
        f"{per_cent(found.error)} over {found.n_pairs:,} pairs"
    )
    return heading + "\n" + align(rows)


def _warnings(report: Report) -> str:
    return "\n".join(["Warnings", *(bullet(note.text) for note in report.warnings)])


def bullet(text: str) -> str:
    """Return a warning, wrapped and marked."""
    return textwrap.fill(text, _WIDTH, initial_indent="  ! ", subsequent_indent="    ")


def align(rows: Sequence[Sequence[str]]) -> str:
    """Return columns padded to equal width: the first to the left, the others to the right.

    A row of one cell is a heading and widens no column.
    """
    width = max((len(row) for row in rows), default=0)
    columns = [
        max((len(row[i]) for row in rows if len(row) == width), default=0) for i in range(width)
    ]
    return "\n".join(_padded(row, columns) for row in rows)


def _padded(row: Sequence[str], columns: Sequence[int]) -> str:
    if len(row) == 1:
        return row[0]
    cells = [row[0].ljust(columns[0])]
    cells += [cell.rjust(width) for cell, width in zip(row[1:], columns[1:], strict=True)]
    return "  ".join(cells).rstrip()


def per_cent(value: float) -> str:
    """Return a fraction as a number of per cent: two decimals, or two digits where that would hide
    it.

    >>> per_cent(0.57104), per_cent(0.0000123), per_cent(0.0)
    ('57.10', '0.0012', '0.00')
    """
    scaled = 100.0 * value
    if not scaled or abs(scaled) >= 0.1:
        return f"{scaled:.2f}"
    if abs(scaled) >= 0.01:
        return f"{scaled:.3f}"
    return f"{scaled:.2g}" if abs(scaled) >= 1e-4 else f"{scaled:.1e}"


def count_range(low: int, high: int, *, compact: bool = False) -> str:
    """Return ``3–17``, or ``3–17k`` where space is short.

    >>> count_range(3, 3), count_range(3, 17_400), count_range(3, 17_400, compact=True)
    ('3', '3–17,400', '3–17k')
    """
    ends = [_compact(n) if compact else f"{n:,}" for n in (low, high)]
    return ends[0] if low == high else "\N{EN DASH}".join(ends)


def _compact(n: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= size:
            return f"{n / size:.2g}{unit}" if n < 100 * size else f"{n / size:.0f}{unit}"
    return str(n)


def propensity_line(constants: dict[str, object]) -> str:
    """Return the model and constants on one line, such as ``JainPropensity(a=0.55, b=1.5), n_rows
    50``.
    """
    known = dict(constants)
    model = known.pop("model", "given vector")
    low, high = known.pop("min", None), known.pop("max", None)
    known.pop("n_labels", None)
    inside = ", ".join(
        f"{key}={_short(value)}" for key, value in known.items() if value is not None
    )
    span = f", from {_short(low)} to {_short(high)}" if low is not None else ""
    return printable(f"{model}({inside}){span}" if inside else f"{model}{span}")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def printable(text: str) -> str:
    """Return a name with U+FFFD for what a terminal might obey or cannot show.

    Any white space becomes a blank; the joiners that some scripts need stay.
    """
    return "".join(
        " " if c.isspace() else c if c.isprintable() or c in _JOINERS else "\ufffd" for c in text
    )
