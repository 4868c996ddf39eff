"""A comparison as one HTML page: the table, a bar for every number, and each model's own report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

from longtail.report.catalogue import OVER
from longtail.report.markup import document
from longtail.report.page import fragment

if TYPE_CHECKING:
    from longtail.cli.compare import Entry

__all__ = ["page"]

_CSS = """
:root{--ink:#1b1f24;--soft:#5a6472;--line:#d8dde3;--bar:#bcd3ee;--best:#6fa3dc;--ground:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e8ebef;--soft:#a3adba;--line:#39424d;--bar:#2f4a69;
--best:#3f76b5;--ground:#14181d}}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;margin:.2rem 0 1rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;min-width:34rem;table-layout:fixed;
font-size:.95rem}
th,td{padding:.4rem .6rem;border-bottom:1px solid var(--line);text-align:right;
white-space:nowrap}
th:first-child{text-align:left;font-weight:500}thead th{color:var(--soft);font-weight:600}
td{background:linear-gradient(var(--bar),var(--bar)) no-repeat left/var(--w) 70%;min-width:6rem}
td.best{background-image:linear-gradient(var(--best),var(--best));font-weight:700}
.note{color:var(--soft);font-size:.9rem}details{margin:1rem 0;border-top:1px solid var(--line)}
summary{cursor:pointer;padding:.7rem 0;font-weight:600}
"""


def page(title: str, entries: Sequence[Entry]) -> str:
    """Return the whole page; it needs no script and nothing from elsewhere."""
    from longtail.cli.compare import SHOWN

    rows = [(m, [e.report[m] for e in entries]) for m in SHOWN if m in entries[0].report.metrics]
    bins = [
        (f"{b[0].name}: {b[0].n_labels:,} labels", [bin.recall[5] for bin in b])
        for b in zip(*(e.report.bins for e in entries), strict=True)
    ]
    costs = [(c, [e.costs()[c] for e in entries]) for c in entries[0].costs()]
    names = [e.name for e in entries]
    details = "".join(
        f"<details><summary>Report on {escape(e.name)}</summary>{fragment(e.report)}</details>"
        for e in entries
    )
    facts = entries[0].report.facts
    body = (
        f"<h1>{escape(title)}: {len(entries)} models compared</h1>"
        f'<p class="note">{facts.n_rows:,} test rows, {facts.n_labels:,} labels, '
        f"measured on {escape(entries[0].report.measured_on)}. "
        f"Strong colour marks the best of a row. Present: {OVER['present']}.</p>"
        + _table("Quality, in per cent", names, rows, lambda v: f"{100 * v:.1f}")
        + _table(
            "Labels found among 5 answers, head to tail", names, bins, lambda v: f"{100 * v:.1f}"
        )
        + _table("Cost (less is better)", names, costs, lambda v: f"{v:,.1f}", less=True)
        + details
    )
    return document(f"{title}: models compared", f"<main>{body}</main>", _CSS)


def _table(
    title: str,
    names: Sequence[str],
    rows: Sequence[tuple[str, Sequence[float | None]]],
    show: Callable[[float], str],
    *,
    less: bool = False,
) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = ""
    for name, values in rows:
        known = [v for v in values if v is not None]
        best = (min if less else max)(known, default=None)
        most = max(known, default=0.0) or 1.0
        cells = "".join(
            "<td></td>"
            if v is None
            else f'<td style="--w:{100 * v / most:.0f}%"{" class=best" if v == best else ""}>'
            f"{show(v)}</td>"
            for v in values
        )
        body += f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'
    return (
        f'<h2>{escape(title)}</h2><div class="scroll"><table><thead><tr><th></th>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )
