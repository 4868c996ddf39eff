"""An audit as a web page: one file, no address outside itself."""

from __future__ import annotations

from longtail.audit.summary import Audit, PropensityFit, group_rows
from longtail.report.markup import document, element, head, row, safe, table
from longtail.report.table import per_cent

__all__ = ["fragment", "page"]


def page(audit: Audit) -> str:
    """Return the whole document."""
    return document(audit.title, fragment(audit))


def fragment(audit: Audit) -> str:
    """Return the audit as one element that brings its style."""
    return element(
        (
            _header(audit),
            _tiles(audit),
            _notes(audit),
            _missing(audit),
            *(_fit(fit) for fit in audit.fits),
            _psp(audit),
        )
    )


def _header(audit: Audit) -> str:
    return (
        f'<header><p class="over">Audit of missing labels</p><h1>{safe(audit.title)}</h1>'
        f'<p class="lead">{audit.n_rows:,} rows, {audit.n_labels:,} labels, '
        f"{audit.n_positives:,.0f} observed positives; {audit.n_examined:,} pairs of row and label "
        "examined by models that had not seen the row.</p></header>"
    )


def _tiles(audit: Audit) -> str:
    expected = f"{audit.expected_missing:,.0f}"
    share = per_cent(audit.expected_missing / audit.n_positives)
    sure = sum(suspect.probability >= 0.5 for suspect in audit.missing)
    tiles = [
        ("Probably missing", expected, f"{share}% of the observed"),
        ("Listed, at least even odds", f"{sure:,}", f"of {len(audit.missing):,} listed"),
    ]
    seen = f"relevant; {audit.psp.observed_labels:.2f} observed"
    for model, implied in audit.psp.implied_labels.items():
        tiles.append((f"Labels a row, says {model}", f"{implied:.2f}", seen))
    inside = "".join(
        f'<div class="tile"><dt>{safe(name)}</dt><dd class="big">{value}</dd>'
        f'<dd class="ci">{safe(note)}</dd></div>'
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{inside}</dl>'


def _notes(audit: Audit) -> str:
    if not audit.warnings:
        return ""
    items = "".join(f"<li>{safe(text)}</li>" for text in audit.warnings)
    return f'<section><h2>Warnings</h2><ul class="notes">{items}</ul></section>'


def _missing(audit: Audit) -> str:
    if not audit.missing:
        return ""
    heads = ["label", "row", "missing", "observed", "propensity"]
    body = [
        row(
            f"label {s.label}" if s.name is None else s.name,
            heads,
            [
                str(s.row),
                f"{s.probability:.3f}",
                f"{s.proba:.3f}",
                f"{s.propensity:.3f}",
            ],
            kind="name",
        )
        for s in audit.missing
    ]
    return (
        "<section><h2>Probably missing</h2>"
        f'<p class="hint">Absent labels by the probability that they are relevant all the same, '
        f"under {safe(audit.propensity)}. Observed: how probable the label was to be there, "
        "according to the model. A column name sorts.</p>"
        f"{table('Probably missing', head(heads), body, sortable=True)}</section>"
    )


def _fit(fit: PropensityFit) -> str:
    heads = [
        "labels",
        "training count",
        "observed",
        "implied missing",
        "found",
        "confident pairs",
        "of them observed",
        "at most",
    ]
    extra = ["training count", "confident pairs"]
    body = []
    for name, *cells in group_rows(fit):
        if cells[-1].endswith("!"):
            cells[-1] = f"<b>{cells[-1]}</b>"
        body.append(row(name, heads, cells, extra))
    verdict = "contradicted by the data" if fit.is_refuted else "not contradicted by the data"
    return (
        f"<section><h2>{safe(fit.model)}: {verdict}</h2>"
        '<p class="hint">Labels by frequency, in bins of about equal volume. Implied: positives '
        "that should be missing, if the propensities were right; found: how many of them the "
        "examined pairs account for. A label cannot be observed more often than its propensity, "
        "not even where the model is most confident: the last columns, in per cent, compare. "
        f"Of all examined pairs, {per_cent(fit.above)}% exceed their propensity.</p>"
        f"{table(fit.model, head(heads, extra), body)}</section>"
    )


def _psp(audit: Audit) -> str:
    heads = ["model", "k", "normalised", "unnormalised", "best possible"]
    body = [
        row(
            r.model,
            heads,
            [str(r.k), per_cent(r.normalised), per_cent(r.unnormalised), per_cent(r.ideal)],
        )
        for r in audit.psp.rows
    ]
    return (
        "<section><h2>Propensity-scored precision of the out-of-fold answers</h2>"
        '<p class="hint">In per cent. The unnormalised value estimates precision on complete '
        "labels and cannot exceed 100 where the propensities are right; the literature reports "
        f"the normalised one.</p>{table('PSP', head(heads), body)}</section>"
    )
