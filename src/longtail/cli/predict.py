"""``longtail predict``: labels for texts, as they come."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import load_tagger
from longtail.cli.output import FORMATS, note, open_output, writer
from longtail.cli.reading import DataOptions
from longtail.cli.streams import batches, texts_from

__all__ = ["command"]

_BATCH = 1000


def command(
    model: opt.ModelFolder,
    texts: Annotated[
        str,
        typer.Argument(
            metavar="TEXTS",
            help="A table, a file with one text a line, or - for standard input (one text a line, "
            "or JSON lines).",
        ),
    ] = "-",
    k: Annotated[int, typer.Option("-k", "--k", help="Labels for each text.", min=1)] = 5,
    threshold: Annotated[
        float | None, typer.Option(help="Leave out labels with a lower score.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Answer only with this label (repeatable).")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Never answer with this label (repeatable).")
    ] = None,
    tail: Annotated[
        float,
        typer.Option(help="From 0, best score first, to 1, rare labels first.", min=0.0, max=1.0),
    ] = 0.0,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help="jsonl, csv or table. \\[default: table on a terminal]"
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="File to write. \\[default: standard output]"),
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Go on after the rows that the output file already holds.")
    ] = False,
    text_column: opt.TextColumn = None,
    delimiter: opt.Delimiter = None,
    json: opt.Json = False,
) -> None:
    """Label texts. Answers stream: each batch is written before the next is read.

    Example:  cat texts.txt | longtail predict model -k 3
    """
    tagger = load_tagger(model)
    on_terminal = output is None and sys.stdout.isatty()
    kind = "jsonl" if json else format or ("table" if on_terminal else "jsonl")
    if kind not in FORMATS:
        raise ValueError(f"unknown format {kind!r}: use {', '.join(FORMATS)}")
    options = DataOptions(text_column=text_column, delimiter=delimiter)
    rows = texts_from(texts, options, tagger.fields_)
    before = _already(output, kind) if resume else 0
    if before:
        note(f"going on after {before:,} rows")
        rows = islice(rows, before, None)
    done = before
    quick = texts == "-" and sys.stdin.isatty()
    with open_output(output, append=bool(before)) as file:
        out = writer(kind, file, before)
        try:
            for batch in batches(rows, _BATCH, quick=quick):
                found = tagger.predict(
                    batch, k, threshold=threshold, include=include, exclude=exclude, tail=tail
                )
                for text, labels in zip(batch, found, strict=True):
                    out.write(_shown(text), labels)
                out.flush()
                done += len(batch)
        except KeyboardInterrupt:
            if output is not None:
                note(f"{done:,} rows written; the same command with --resume goes on")
            raise


def _shown(text: Any) -> str:
    return text if isinstance(text, str) else " ".join(part for part in text.values() if part)


def _already(output: str | None, kind: str) -> int:
    """Rows that an earlier run wrote whole; half a line at the end is cut off."""
    if kind != "jsonl" or output is None:
        raise ValueError("--resume goes with --output and the format jsonl")
    if not os.path.exists(output):
        return 0
    with open(output, "rb+") as file:
        end, rows = 0, 0
        for line in _lines(file):
            if line.endswith(b"\n"):
                end, rows = end + len(line), rows + 1
        file.truncate(end)
    return rows


def _lines(file: Any) -> Iterator[bytes]:
    yield from file
