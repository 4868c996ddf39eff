"""What ``train`` tells about data and model, in plain sentences."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtail.data import Dataset

__all__ = ["example_texts", "gaps", "in_short"]

_EXAMPLES = 3
_LONGEST = 600  # characters of an example


def gaps(dataset: Dataset) -> list[str]:
    """Return sentences about rows to learn from that have no text or no label, if there are any."""
    rows = dataset.whole or dataset.train
    n = len(rows)
    unlabelled = int((rows.Y.getnnz(axis=1) == 0).sum()) if n else 0
    empty = sum(not text.strip() for text in rows.texts or ())
    found = []
    if empty:
        found.append(f"{empty:,} of {n:,} texts are empty")
    if unlabelled:
        found.append(f"{unlabelled:,} of {n:,} rows have no label: they are learned as having none")
    return found


def example_texts(dataset: Dataset) -> list[Any]:
    """Return a few texts to try a model on, of middle length, from the rows that were not learned
    from where there are such.
    """
    rows = dataset.test if len(dataset.test) else dataset.train
    texts = rows.texts or []
    order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
    order = [i for i in order if texts[i].strip()]
    n = len(order)
    if not n:
        return []
    places = sorted({order[min(n - 1, n * share // 10)] for share in (3, 5, 7)})
    if rows.fields is not None:
        return [{f: column[i][:_LONGEST] for f, column in rows.fields.items()} for i in places]
    return [texts[i][:_LONGEST] for i in places[:_EXAMPLES]]


def in_short(tagger: Any, folder: Path, report: Any, seconds: float) -> str:
    """Return four lines: what was made, how good it is, how rare labels fare, what to do next."""
    lines = [
        f"Model: {tagger.choice_.partition(':')[0]}; {len(tagger.label_names):,} labels, learned "
        f"from {tagger.n_rows_:,} rows; saved in {folder} after {seconds:.1f} s."
    ]
    if report is None:
        lines.append("Not measured: there were no rows to measure on.")
    else:
        lines += [_how_good(report), _rare(report)]
        if report.parts:
            lines.append(_parts(report))
    place = shlex.quote(str(folder))
    lines.append(
        f"Next: longtail serve {place} (a page in the browser), or longtail predict {place} "
        "NEW.csv -o answers.csv"
        + (
            ""
            if report is None
            else f"; the whole report: longtail inspect {place} --report r.html"
        )
    )
    return "\n".join(
        textwrap.fill(line, 79, subsequent_indent="  ", break_on_hyphens=False) for line in lines
    )


def _how_good(report: Any) -> str:
    first, k = report.metrics["P@1"], max(report.ks)
    span = "" if first.low is None else f" ({_per(first.low)} to {_per(first.high)})"
    return (
        f"On {report.facts.n_rows:,} rows it had not seen: {_per(first.value)} %{span} of the "
        f"first answers are right, and {_per(report[f'R@{k}'])} % of the true labels are among {k} "
        "answers."
    )


def _parts(report: Any) -> str:
    """Return what the first answers would be without each part."""
    whole, *parts = report.parts
    said = ", ".join(
        f"{part.name} {100 * (whole.alone['P@1'] - part.without['P@1']):+.1f}" for part in parts
    )
    return f"What each part adds, in points of the share of right first answers: {said}."


def _rare(report: Any) -> str:
    from longtail.report.formatting import count_range

    k, bins = max(report.ks), report.bins
    if len(bins) < 2:
        return "Rare labels: none, all labels are about as frequent."
    head, tail = bins[0], bins[-1]
    counts = count_range(tail.min_count, tail.max_count)
    said = (
        f"Rare labels ({tail.n_labels:,} of {report.facts.n_labels:,}, with {counts} training rows "
        f"each): {_per(tail.recall[k])} % of theirs are found, {_per(head.recall[k])} % of those "
        "of the most frequent labels."
    )
    if report.warnings:
        n = len(report.warnings)
        said += f" The report has {n} warning{'s' if n > 1 else ''}."
    return said


def _per(share: float) -> str:
    return f"{100 * share:.1f}"
