"""A comparison as one HTML page: the table, a bar for every number, and each model's own report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longtail.cli.compare import numbers
from longtail.report.catalogue import OVER
from longtail.report.templates import fragment, render

if TYPE_CHECKING:
    from longtail.cli.compare import Entry

__all__ = ["page"]


def page(title: str, entries: Sequence[Entry]) -> str:
    """Return the whole page, with nothing from elsewhere."""
    metrics, bins, costs = numbers(entries)
    first = entries[0].report
    return render(
        "compare.html",
        title=f"{title}: models compared",
        data=title,
        facts=first.facts,
        measured_on=first.measured_on,
        present=OVER["present"],
        tables=[
            ("Quality, in per cent", [(name, _cells(row)) for name, row in metrics]),
            ("Labels found among 5 answers, head to tail", [(n, _cells(row)) for n, row in bins]),
            ("Cost (less is better)", [(name, _cells(row, best=min)) for name, row in costs]),
        ],
        reports={e.name: fragment(e.report, styled=False) for e in entries},
        sortable=any(e.report.labels for e in entries),
    )


def _cells(row: Sequence[float | None], best: Any = max) -> list[dict[str, Any] | None]:
    """Return what a cell shows of each value, and its bar; None where a value is not known."""
    known = [value for value in row if value is not None]
    most = max(known, default=0.0) or 1.0
    return [
        None
        if value is None
        else {
            "text": f"{value:,.1f}",
            "width": f"{100 * value / most:.0f}",
            "best": value == best(known),
        }
        for value in row
    ]
