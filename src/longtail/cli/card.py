"""A model card: what a model is, what it learned from, how good it is and where not to trust it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["model_card"]

_METRICS = ("P@1", "P@5", "R@5", "nDCG@5", "PSP@5", "macro-F1 present@5", "coverage present@5")


def model_card(tagger: Any, folder: Path, size: int) -> str:
    """Return the card of a saved tagger, in Markdown; says so where something was not recorded."""
    made = tagger.provenance_ or {}
    name = Path(folder).resolve().name
    scores = "probabilities" if tagger.has_probabilities else "scores that are no probabilities"
    parts = [
        f"# {_plain(name)}",
        f"Reads a text and answers with label names, the best of {len(tagger.label_names):,} "
        f"first, and {scores}. Inside: {_plain(tagger.choice_)}.",
        "## How to use it",
        f"```sh\nlongtail predict {name} texts.csv -o answers.csv\nlongtail serve {name}\n```",
        f"```python\nimport longtail as lt\n\ntagger = lt.load({name!r})\n"
        f"tagger.predict([{_question(tagger)}], k=5)\n```",
        "## What it learned from",
        _table(
            [
                ("data", (made.get("data") or {}).get("path")),
                ("SHA-256", (made.get("data") or {}).get("sha256")),
                ("texts", f"{tagger.n_rows_:,}"),
                ("labels", f"{len(tagger.label_names):,}"),
                ("labels with one text", f"{int((tagger.label_counts_ == 1).sum()):,}"),
                ("text fields", ", ".join(tagger.fields_ or []) or None),
                ("label texts", None if tagger.label_texts_ is None else "yes"),
            ]
        ),
        "## How good it is",
        *_measured(tagger),
        "## How it was made",
        _table(
            [
                ("date", made.get("created")),
                ("command", f"`{made['command']}`" if made.get("command") else None),
                ("seconds of training", _seconds(made.get("seconds"))),
                ("longtail", made.get("longtail")),
                (
                    "with",
                    ", ".join(f"{n} {made[n]}" for n in ("python", "numpy", "scipy") if n in made),
                ),
                ("model", f"`{tagger.model_!r}`"),
                ("vectoriser", f"`{tagger.vectorizer_!r}`"),
                ("bytes", f"{size:,}"),
            ]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _measured(tagger: Any) -> list[str]:
    if tagger.report_ is None:
        return ["It was not measured when it was made."]
    summary = tagger.report_["summary"]
    metrics, meanings = summary["metrics"], summary.get("meanings", {})
    on = summary.get("measured_on")
    rows = ["| metric | per cent | interval | what it says |", "|---|---:|---:|---|"]
    for name in _METRICS:
        if name in metrics:
            ci = metrics[name]["ci"]
            span = "" if ci is None else f"{100 * ci[0]:.1f} to {100 * ci[1]:.1f}"
            said = _plain(meanings.get(name.partition("@")[0], ""))
            rows.append(f"| {name} | {100 * metrics[name]['value']:.1f} | {span} | {said} |")
    bins = ["| labels | how many | training texts each | found among five, per cent |"]
    bins.append("|---|---:|---:|---:|")
    for one in summary.get("bins", []):
        found = next(iter(reversed(one["recall"].values())), 0.0)
        counts = f"{one['min_count']:,} to {one['max_count']:,}"
        bins.append(f"| {one['name']} | {one['n_labels']:,} | {counts} | {100 * found:.1f} |")
    notes = [f"- {_plain(note['text'])}" for note in summary.get("warnings", [])]
    return [
        *([f"Measured on {_plain(on)}."] if on else []),
        "\n".join(rows),
        "From frequent to rare labels:",
        "\n".join(bins),
        *(["## Where not to trust it", "\n".join(notes)] if notes else []),
    ]


def _table(rows: list[tuple[str, Any]]) -> str:
    lines = ["| | |", "|---|---|"]
    for name, value in rows:
        if value is not None and value != "":
            lines.append(f"| {name} | {_plain(str(value))} |")
    return "\n".join(lines)


def _seconds(value: Any) -> str | None:
    return f"{value:,.1f}" if isinstance(value, (int, float)) else None


def _question(tagger: Any) -> str:
    if tagger.fields_ is None:
        return '"a text"'
    return "{" + ", ".join(f'"{field}": "a text"' for field in tagger.fields_) + "}"


def _plain(text: Any) -> str:
    """Return a text that cannot end its line, its cell or become markup of its own."""
    said = " ".join(str(text).split()).replace("|", "\\|")
    return said.replace("<", "&lt;")
