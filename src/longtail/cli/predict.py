"""``longtail predict``: labels for texts, as they come."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import count, islice
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.answers import Answered, Layout, format_of, open_writer
from longtail.cli.models import load_tagger
from longtail.cli.output import check_writable, note
from longtail.cli.reading import DataOptions
from longtail.cli.streams import batches, rows_from

__all__ = ["command"]

_BATCH = 1000


def command(
    model: opt.ModelFolder,
    texts: Annotated[
        str,
        typer.Argument(
            metavar="TEXTS",
            help="A table, a file with one text per line, or - for standard input (one text per "
            "line, or JSON lines).",
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
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; its name tells the format: .csv, .tsv, .jsonl or .parquet. "
            "[default: standard output]",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="jsonl, csv, tsv, parquet or table, whatever the name of the file.",
            show_default=False,
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(help="Column of ids, to join the answers by.", show_default=False),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(help="More columns to write beside the answers: a,b.", show_default=False),
    ] = None,
    per_label: Annotated[
        bool,
        typer.Option(
            "--per-label/--per-text",
            help="One row per answer, or one per text with its labels in one cell: a;b;c.",
        ),
    ] = False,
    label_separator: Annotated[
        str | None,
        typer.Option(
            help="What to write between labels in one cell. [default: as in training, or ;]",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
    resume: Annotated[
        bool, typer.Option(help="Go on after the rows that the output file already holds.")
    ] = False,
    text_column: opt.TextColumn = None,
    delimiter: opt.Delimiter = None,
    json: opt.Json = False,
) -> None:
    """Label texts, and write answers that join back to them.

    Answers stream: each batch is written before the next is read. The columns are those of the
    training unless you say otherwise.

    Example:  longtail predict model new.csv --id-column id -o answers.csv
    """
    kind = "jsonl" if json else format_of(output, format)
    _check_output(output, texts, overwrite=overwrite, resume=resume)
    tagger = load_tagger(model)
    said = DataOptions(text_column, None, label_separator, delimiter)
    options = said.with_remembered(tagger, texts)
    kept = [*([id_column] if id_column else []), *(keep.split(",") if keep else [])]
    kept = list(dict.fromkeys(column.strip() for column in kept))
    layout = Layout(
        columns=kept,
        numbered=id_column is None and "row" not in kept,
        per_label=per_label,
        separator=options.label_separator or ";",
        label_texts=_label_texts(tagger),
    )
    if kind in ("csv", "tsv") and not per_label:
        _check_separator(tagger, layout.separator)
    rows = rows_from(texts, options, tagger.fields_, kept)
    before = _already(output, kind, per_label) if resume else 0
    if before:
        note(f"going on after {before:,} rows")
        rows = islice(rows, before, None)
    done = before
    quick = texts == "-" and sys.stdin.isatty()
    numbers = count(before)
    with open_writer(kind, output, layout, append=bool(before)) as out:
        try:
            for batch in batches(rows, _BATCH, quick=quick):
                found = tagger.predict(
                    [row.text for row in batch],
                    k,
                    threshold=threshold,
                    include=include,
                    exclude=exclude,
                    tail=tail,
                )
                out.write(
                    [
                        Answered(number, _shown(row.text), row.kept, labels)
                        for row, labels, number in zip(batch, found, numbers, strict=False)
                    ]
                )
                done += len(batch)
        except KeyboardInterrupt:
            if output is not None and kind == "jsonl":
                note(f"{done:,} rows written; the same command with --resume goes on")
            raise
    if output not in (None, "-"):
        note(f"{done:,} texts labelled: {output}")


def _shown(text: Any) -> str:
    return text if isinstance(text, str) else " ".join(part for part in text.values() if part)


def _label_texts(tagger: Any) -> dict[str, str] | None:
    texts = tagger.label_texts_
    return None if texts is None else dict(zip(tagger.label_names, texts, strict=True))


def _check_output(output: str | None, texts: str, *, overwrite: bool, resume: bool) -> None:
    """Refuse, before any work, a file that is there or could not be written."""
    if output is None or output == "-":
        return
    check_writable(output, "--output")
    if not os.path.exists(output):
        return
    if texts != "-" and os.path.exists(texts) and os.path.samefile(output, texts):
        raise ValueError(f"{output} holds the texts: write the answers to another file")
    if not (overwrite or resume):
        raise FileExistsError(f"{output} exists: choose another file, or pass --overwrite")


def _check_separator(tagger: Any, separator: str) -> None:
    """Refuse a separator that a label has in its name: the cell could not be read again."""
    for name in tagger.label_names:
        if separator in name:
            raise ValueError(
                f"the label {name!r} has {separator!r} in its name: pass another "
                "--label-separator, or --per-label, or write .jsonl"
            )


def _already(output: str | None, kind: str, per_label: bool) -> int:
    """Return rows that an earlier run wrote whole; half a line at the end is cut off."""
    if kind != "jsonl" or per_label or output is None or output.endswith(".gz"):
        raise ValueError("--resume goes with --output and the format jsonl, one row per text")
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
