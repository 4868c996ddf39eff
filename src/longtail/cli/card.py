"""A model card: what a model is, what it learned from, how good it is and where not to trust it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

__all__ = ["model_card"]

_METRICS = ("P@1", "P@5", "R@5", "nDCG@5", "PSP@5", "macro-F1 present@5", "coverage present@5")


def model_card(tagger: Any, folder: Path, size: int) -> str:
    """Return the card of a saved tagger, in Markdown; says so where something was not recorded."""
    from longtail.report.catalogue import CATALOGUE
    from longtail.report.rendering import origin
    from longtail.report.templates import render

    name, report = Path(folder).resolve().name, tagger.report_
    return render(
        "card.md",
        name=name,
        shell_name=shlex.quote(name),
        python_name=repr(name),
        question=json.dumps(dict.fromkeys(tagger.fields_ or (), "a text") or "a text"),
        tagger=tagger,
        made=dict(origin(tagger.provenance_)),
        report=report,
        metrics=[report.metrics[m] for m in _METRICS if m in report.metrics] if report else [],
        meanings={entry.symbol: entry.meaning for entry in CATALOGUE},
        size=size,
    )
