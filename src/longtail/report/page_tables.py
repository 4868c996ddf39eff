"""The tables of the page."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.report.catalogue import CATALOGUE, GROUPS
from longtail.report.markup import head, row, safe, table
from longtail.report.measure import Measurement
from longtail.report.slices import Label
from longtail.report.summary import Report
from longtail.report.table import bin_rows, bins_from, interval_name, per_cent

__all__ = ["bins", "calibration", "every_label", "interval", "labels", "metrics", "parts", "rules"]


def interval(m: Measurement, tag: str) -> str:
    """Return the ends of a confidence interval as an element, or nothing."""
    if m.low is None or m.high is None:
        return ""
    kind = ' class="ci"' if tag == "dd" else ""
    return f"<{tag}{kind}>{per_cent(m.low)}&ndash;{per_cent(m.high)}</{tag}>"


def metrics(report: Report) -> str:
    """Return every metric by k, with what it says."""
    heads = ["metric", *(f"@{k}" for k in report.ks)]
    present = [e for e in CATALOGUE if f"{e.symbol}@{report.ks[0]}" in report.metrics]
    body = []
    for group, heading in GROUPS.items():
        entries = [e for e in present if e.group == group]
        if entries:
            body.append(f'<tr><th scope="colgroup" colspan="{len(heads)}">{heading}</th></tr>')
        for e in entries:
            found = [report.metrics[f"{e.symbol}@{k}"] for k in report.ks]
            cells = "".join(f"<td>{per_cent(m.value)}{interval(m, 'small')}</td>" for m in found)
            body.append(
                f'<tr><th scope="row">{safe(e.symbol)}'
                f'<small class="meaning">{safe(e.meaning)}</small></th>{cells}</tr>'
            )
    hint = "In per cent."
    if any(m.low is not None for m in report.metrics.values()):
        hint += f" Small: {interval_name(report)}."
    meanings = "".join(f"<dt>{safe(e.symbol)}@k</dt><dd>{safe(e.meaning)}</dd>" for e in present)
    return (
        f'<section><h2>All metrics</h2><p class="hint">{hint}</p>'
        f"{table('All metrics', head(heads), body)}"
        '<details class="meanings"><summary>What each metric says</summary>'
        f'<dl class="facts">{meanings}</dl></details></section>'
    )


def bins(report: Report) -> str:
    """Return labels by frequency, from head to tail."""
    if not report.bins:
        return ""
    heads, *rows = bin_rows(report)
    extra = [heads[3], heads[6]]
    body = [row(name, heads, cells, extra) for name, *cells in rows]
    return (
        "<section><h2>Head to tail, in numbers</h2>"
        f'<p class="hint">Labels by {bins_from(report)} frequency, in bins of about equal volume. '
        "In per cent: the bin's positives found, those of its labels present in the test rows that "
        "are answered rightly at least once, and what it adds to precision.</p>"
        f"{table('Head to tail', head(heads, extra), body)}</section>"
    )


def parts(report: Report) -> str:
    """Return what each part of a fused model does alone, and what the whole is without it."""
    if not report.parts:
        return ""
    names = list(report.parts[0].alone)
    heads = ["part", *names, *(f"{name} without it" for name in names)]
    body = []
    for part in report.parts:
        left = [per_cent(part.without[name]) if part.without else "" for name in names]
        body.append(row(part.name, heads, [*(per_cent(part.alone[n]) for n in names), *left]))
    return (
        "<section><h2>Parts of the model</h2>"
        '<p class="hint">In per cent: every part alone, and the whole without it. What a part adds '
        "is the difference to the whole.</p>"
        f"{table('Parts of the model', head(heads), body)}</section>"
    )


def rules(report: Report) -> str:
    """Return every decision rule: the metrics it is chosen by, and recall and coverage of each
    bin.
    """
    if not report.rules:
        return ""
    k = max(report.ks)
    names = [f"{symbol}@{k}" for symbol in ("P", "R", "macro-F1", "coverage")]
    whole = ["rule", *names, "answers a row"]
    first = [
        row(
            rule.name,
            whole,
            [*(per_cent(rule.metrics[n]) for n in names), f"{rule.metrics['answers a row']:.2f}"],
        )
        for rule in report.rules
    ]
    heads = ["rule", *(b.name for b in report.rules[0].bins)]
    parts = []
    for caption, kind in (("Positives found", "recall"), ("Labels present, covered", "coverage")):
        body = [
            row(rule.name, heads, [per_cent(getattr(b, kind)[k]) for b in rule.bins])
            for rule in report.rules
        ]
        parts.append(f"<h3>{caption}</h3>{table(caption, head(heads), body)}")
    return (
        f"<section><h2>Decision rules at k = {k}</h2>"
        '<p class="hint">In per cent; macro-F1 and coverage over all labels. Below, from frequent '
        "to rare labels: positives that are found, and labels present in the test rows that are "
        "answered rightly at least once.</p>"
        f"{table('Decision rules', head(whole), first)}"
        f"{''.join(parts)}</section>"
    )


def every_label(report: Report) -> str:
    """Return the table of single labels, which can be sorted."""
    if not report.labels:
        return ""
    trained = report.labels[0].train_count is not None
    others = [rule.name for rule in report.rules[1:]]
    heads = ["label", *(["training"] if trained else []), "true", "answered", "right", "F1"]
    extra = ["training", "answered"]
    for name in others:
        heads += [f"answered, {name}", f"right, {name}"]
        extra.append(f"answered, {name}")
    body = []
    for label in report.labels:
        cells = [f"{v:,.0f}" for v in (label.positives, label.predicted, label.hits)]
        cells.append(per_cent(label.f1))
        if trained:
            cells.insert(0, f"{label.train_count:,}")
        cells += [f"{v:,.0f}" for pair in label.rules for v in pair]
        body.append(row(_name(label), heads, cells, extra, kind="name"))
    known = report.facts.n_labels
    return (
        f"<section><h2>Label by label at k = {max(report.ks)}</h2>"
        f'<p class="hint">{len(report.labels):,} of {known:,} labels, from frequent to rare: how '
        "often each was true, answered, and both. A column name sorts.</p>"
        f"{table('Label by label', head(heads, extra), body, sortable=True)}</section>"
    )


def calibration(report: Report) -> str:
    """Return probabilities against hit rates, from head to tail."""
    found = report.calibration
    if found is None:
        return ""
    heads = ["labels", "pairs", "mean probability", "right", "calibration error"]
    body = [
        row(
            group.name,
            heads,
            (
                f"{group.n_pairs:,}",
                per_cent(group.proba),
                per_cent(group.hit_rate),
                per_cent(group.error),
            ),
            ["pairs"],
        )
        for group in found.groups
    ]
    return (
        "<section><h2>Probabilities, head to tail</h2>"
        f'<p class="hint">Of the first {found.k} answers, by label frequency. In per cent.</p>'
        f"{table('Probabilities', head(heads, ['pairs']), body)}</section>"
    )


def labels(report: Report) -> str:
    """Return the labels behind most errors."""
    lists = "".join(
        f"<div><h3>{heading}</h3>{_label_table(heading, found)}</div>"
        for heading, found in (
            ("Most often missed", report.missed),
            ("Most often wrongly answered", report.overpredicted),
        )
        if found
    )
    if not lists:
        return ""
    return (
        f"<section><h2>Labels behind most errors at k = {max(report.ks)}</h2>"
        '<p class="hint">How often each was true, answered, and both.</p>'
        f'<div class="pair">{lists}</div></section>'
    )


def _label_table(caption: str, found: Sequence[Label]) -> str:
    trained = found[0].train_count is not None
    heads = ["label", *(["training"] if trained else []), "true", "answered", "right"]
    extra = ["training"]
    body = []
    for label in found:
        cells = [f"{v:,.0f}" for v in (label.positives, label.predicted, label.hits)]
        if trained:
            cells.insert(0, f"{label.train_count:,}")
        body.append(row(_name(label), heads, cells, extra, kind="name"))
    return table(caption, head(heads, extra), body)


def _name(label: Label) -> str:
    """Return what a label is called: in words, with its name behind, or by its name or number
    alone.
    """
    name = f"label {label.id}" if label.name is None else label.name
    return name if label.text is None else f"{label.text} ({name})"
