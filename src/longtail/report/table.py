"""Tables of a report as rows of text: the names of the columns, then the cells of every row."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.report.calibration import Calibration
from longtail.report.catalogue import grouped
from longtail.report.formatting import count_range, per_cent
from longtail.report.measure import Measurement
from longtail.report.slices import Label
from longtail.report.summary import Report

__all__ = [
    "bin_rows",
    "bins_from",
    "calibration_rows",
    "label_rows",
    "metric_rows",
    "part_rows",
    "rule_rows",
]


def metric_rows(report: Report) -> list[list[str]]:
    """Return the metrics at every k with their intervals; headings are rows of one cell."""
    rows: list[list[str]] = [["", *(f"@{k}" for k in report.ks)]]
    for heading, entries in grouped(report.metrics):
        rows.append([heading])
        for entry, names in entries:
            rows.append([f"  {entry.symbol}", *(_cell(report.metrics[name]) for name in names)])
    return rows


def _cell(m: Measurement) -> str:
    value = per_cent(m.value)
    if m.low is None or m.high is None:
        return value
    return f"{value} [{per_cent(m.low)}, {per_cent(m.high)}]"


def bins_from(report: Report) -> str:
    """Return which rows the bins were made by: training or test."""
    return "training" if report.settings["bins_from"] == "train" else "test"


def bin_rows(report: Report) -> list[list[str]]:
    """Return the bins from head to tail."""
    k, count = max(report.ks), f"{bins_from(report)} count"
    measured = [f"R@{k}", f"coverage present@{k}", f"part of P@{k}"]
    rows = [["bin", "labels", count, "positives", *measured]]
    for b in report.bins:
        counts = [f"{b.n_labels:,}", count_range(b.min_count, b.max_count), f"{b.n_positives:,.0f}"]
        shares = [per_cent(of[k]) for of in (b.recall, b.coverage, b.contribution)]
        rows.append([b.name, *counts, *shares])
    return rows


def rule_rows(
    report: Report,
    symbols: Sequence[str] = (),
    bins: str = "",
    prefix: str = "",
    *,
    size: bool = False,
) -> list[list[str]]:
    """Return the decision rules: metrics by symbol, a field such as ``recall`` of each bin with
    ``prefix`` before its name, and with ``size`` how many answers a row has.
    """
    k = max(report.ks)
    names = [f"{symbol}@{k}" for symbol in symbols]
    heads = [f"{prefix}{b.name}" for b in report.rules[0].bins] if bins else []
    rows = [["rule", *names, *heads, *["answers a row"] * size]]
    for rule in report.rules:
        values = [rule.metrics[name] for name in names]
        values += [getattr(b, bins)[k] for b in rule.bins] if bins else []
        answers = [f"{rule.metrics['answers a row']:.2f}"] * size
        rows.append([rule.name, *map(per_cent, values), *answers])
    return rows


def part_rows(report: Report, *, apart: bool = False) -> list[list[str]]:
    """Return the parts of a fused model: each alone, and the whole without it.

    ``apart``: the two with a column between them, whose name says what follows.
    """
    names = list(report.parts[0].alone)
    without = ["without it:", *names] if apart else [f"{name} without it" for name in names]
    rows = [["part", *names, *without]]
    for part in report.parts:
        alone = [per_cent(part.alone[name]) for name in names]
        left = [per_cent(part.without[name]) if part.without else "" for name in names]
        rows.append([part.name, *alone, *[""] * apart, *left])
    return rows


def calibration_rows(found: Calibration) -> list[list[str]]:
    """Return groups of labels with what was promised of them and what came true."""
    rows = [["labels", "pairs", "mean probability", "right", "calibration error"]]
    for group in found.groups:
        shares = [per_cent(v) for v in (group.proba, group.hit_rate, group.error)]
        rows.append([group.name, f"{group.n_pairs:,}", *shares])
    return rows


def label_rows(
    labels: Sequence[Label], rules: Sequence[str] = (), *, f1: bool = False
) -> list[list[str]]:
    """Return how often each label was true, answered, and both; ``rules`` are the names of other
    decision rules.
    """
    rows = []
    for label in labels:
        name = f"label {label.id}" if label.name is None else label.name
        cells = {"label": name if label.text is None else f"{label.text} ({name})"}
        if label.train_count is not None:
            cells["training"] = f"{label.train_count:,}"
        cells["true"], cells["answered"] = f"{label.positives:,.0f}", f"{label.predicted:,.0f}"
        cells["right"] = f"{label.hits:,.0f}"
        if f1:
            cells["F1"] = per_cent(label.f1)
        for rule, (answered, right) in zip(rules, label.rules, strict=False):
            cells[f"answered, {rule}"] = f"{answered:,.0f}"
            cells[f"right, {rule}"] = f"{right:,.0f}"
        rows.append(cells)
    return [list(rows[0]), *(list(cells.values()) for cells in rows)]
