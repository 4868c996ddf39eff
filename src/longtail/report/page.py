"""A report as a web page: one file, no address outside itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtail.report import drawings, page_tables
from longtail.report.catalogue import CATALOGUE
from longtail.report.markup import document, element, safe
from longtail.report.page_tables import interval
from longtail.report.summary import Report
from longtail.report.table import per_cent, propensity_line

__all__ = ["fragment", "page", "with_origin"]

_LAST = "<dt>Made by</dt>"
_TILES = ("P", "nDCG", "PSP", "macro-F1", "coverage")


def page(report: Report) -> str:
    """Return the whole document."""
    return document(report.title, fragment(report))


def fragment(report: Report) -> str:
    """Return the report as one element that brings its style, for notebooks and other pages."""
    return element(
        (
            _header(report),
            _tiles(report),
            _rules(report),
            _notes(report),
            drawings.section(report),
            page_tables.metrics(report),
            page_tables.bins(report),
            page_tables.rules(report),
            page_tables.parts(report),
            page_tables.calibration(report),
            page_tables.labels(report),
            page_tables.every_label(report),
            _provenance(report),
        )
    )


def _header(report: Report) -> str:
    facts = report.facts
    return (
        f'<header><p class="over">Evaluation report</p><h1>{safe(report.title)}</h1>'
        f'<p class="lead">{facts.n_rows:,} rows, {facts.n_labels:,} labels, '
        f"{facts.present_labels:,} of them in the test set, "
        f"{facts.labels_per_row:.2f} labels per row."
        + (f" Measured on {safe(report.measured_on)}." if report.measured_on else "")
        + "</p></header>"
    )


def _tiles(report: Report) -> str:
    over = {entry.symbol: entry.over for entry in CATALOGUE}
    tiles = []
    for symbol in _TILES:
        k = report.ks[0] if symbol == "P" else max(report.ks)
        m = report.metrics.get(f"{symbol}@{k}")
        if m is not None:
            tiles.append(
                f'<div class="tile"><dt>{safe(m.name)}</dt>'
                f'<dd class="big">{per_cent(m.value)}<span>%</span></dd>'
                f"{interval(m, 'dd')}"
                + (f'<dd class="ci">{over[symbol]}</dd>' if over[symbol] else "")
                + "</div>"
            )
    return f'<dl class="tiles">{"".join(tiles)}</dl>'


def _rules(report: Report) -> str:
    """Return the sentences about the decision rules: first, since they say what there is to
    decide.
    """
    if not report.rules:
        return ""
    items = "".join(f"<li>{safe(rule.sentence)}</li>" for rule in report.rules[1:])
    return f'<section><h2>In a sentence</h2><ul class="sentences">{items}</ul></section>'


def _notes(report: Report) -> str:
    if not report.warnings:
        return ""
    items = "".join(
        f"<li><b>{safe(_concerns(note.concerns))}</b>{safe(note.text)}</li>"
        for note in report.warnings
    )
    return f'<section><h2>Warnings</h2><ul class="notes">{items}</ul></section>'


def _concerns(symbols: Sequence[str]) -> str:
    return "All metrics" if "all" in symbols else ", ".join(symbols)


def _provenance(report: Report) -> str:
    from longtail import __version__

    facts, settings = report.facts, report.settings
    rows = [
        ("Test rows", f"{facts.n_rows:,}, {facts.unlabelled_rows:,} of them without a label"),
        ("Test positives", f"{facts.n_positives:,.0f}"),
        ("Labels", f"{facts.n_labels:,}, {facts.present_labels:,} with a test positive"),
    ]
    if facts.n_train_rows is not None:
        unseen = f"{facts.unseen_labels:,} of the labels in the test set"
        rows += [("Training rows", f"{facts.n_train_rows:,}"), ("Never seen in training", unseen)]
    if facts.trained_rows is not None:
        rows.append(("Test rows trained on", f"{facts.trained_rows:,}"))
    if facts.n_filters is not None:
        rows.append(("Filter pairs", f"{facts.n_filters:,}"))
    if report.propensity is not None:
        rows.append(("Propensities", propensity_line(report.propensity)))
    if settings["n_resamples"]:
        rows.append(("Intervals", _resampling(settings)))
    rows.append(("Test set", facts.fingerprint))
    inside = _facts(rows) + _facts(_origin(report.provenance)) + _LAST
    inside += f"<dd>longtail {safe(__version__)}</dd>"
    return f'<section><h2>How this was measured</h2><dl class="facts">{inside}</dl></section>'


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    return "".join(f"<dt>{safe(name)}</dt><dd>{safe(value)}</dd>" for name, value in rows)


def with_origin(html: str, made: dict[str, Any] | None) -> str:
    """Return a page that was made without provenance, with it.

    A model keeps its report without the time of day, so that its arrays do not depend on that.
    """
    before, last, after = html.rpartition(_LAST)
    return f"{before}{_facts(_origin(made))}{last}{after}" if last else html


def _origin(made: dict[str, Any] | None) -> list[tuple[str, str]]:
    """When, by which command and of which file: where that is known."""
    if made is None:
        return []
    data = made.get("data") or {}
    rows = [("Date", made.get("created")), ("Command", made.get("command"))]
    rows += [("Data", data.get("path")), ("SHA-256 of the data", data.get("sha256"))]
    if made.get("seconds") is not None:
        rows.append(("Seconds of training", f"{made['seconds']:,.1f}"))
    versions = [f"{name} {made[name]}" for name in ("python", "numpy", "scipy") if name in made]
    rows.append(("With", ", ".join(versions)))
    return [(name, str(value)) for name, value in rows if value]


def _resampling(settings: dict[str, Any]) -> str:
    by_label = settings["n_resamples_by_label"]
    return (
        f"bootstrap over rows, {100 * settings['confidence']:g}%, "
        f"{settings['n_resamples']:,} resamples ({by_label or 'none'} for means over labels)"
    )
