"""Texts for prediction, one after the other, without holding them all."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from longtail.cli.reading import DataOptions

__all__ = ["Row", "batches", "rows_from"]


class Row(NamedTuple):
    """A text, or texts by field, and the cells that travel with it to the output."""

    text: Any
    kept: Sequence[Any] = ()


def rows_from(
    source: str, options: DataOptions, fields: list[str] | None, kept: Sequence[str] = ()
) -> Iterator[Row]:
    """Yield texts of a file, or of standard input (``-``), with the cells of the columns ``kept``.

    Standard input and files that are no table hold one text per line, or one JSON object per line
    where the first line is one. A table gives its text column.
    """
    from longtail.data.table_rows import is_table_name

    if source == "-":
        if sys.stdin.isatty():
            print("reading texts, one per line; end with Ctrl-D", file=sys.stderr)
        stream = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="\n")
        yield from _from_lines(stream, options, fields, kept, "<standard input>")
    elif is_table_name(source):
        yield from _from_table(source, options, fields, kept)
    else:
        from longtail._lines import read_lines

        lines = (line for _, line in read_lines(source))
        yield from _from_lines(lines, options, fields, kept, source)


def _from_table(
    path: str, options: DataOptions, fields: list[str] | None, kept: Sequence[str]
) -> Iterator[Row]:
    from longtail.data.cells import text_from
    from longtail.data.table_rows import table_rows

    wanted = fields or (options.text_column or "text").split(",")
    width = len(wanted)
    delimiter = options.given().get("delimiter")
    for place, cells, _ in table_rows(path, [*wanted, *kept], delimiter):
        try:
            texts = [text_from([cell], " ") for cell in cells[:width]]
        except ValueError as error:
            raise place.error(f"{' or '.join(wanted)}: {error}") from None
        whole = " ".join(text for text in texts if text)
        yield Row(dict(zip(fields, texts, strict=True)) if fields else whole, cells[width:])


def _from_lines(
    lines: Iterable[str],
    options: DataOptions,
    fields: list[str] | None,
    kept: Sequence[str],
    name: str,
) -> Iterator[Row]:
    numbered = enumerate(lines, 1)
    first = next(numbered, None)
    if first is None:
        return
    as_json = first[1].lstrip().startswith("{")
    if kept and not as_json:
        raise ValueError(
            f"{name} has plain lines and no column {kept[0]!r}: --id-column and --keep are for "
            "tables and JSON lines"
        )
    for number, line in chain([first], numbered):
        line = line.rstrip("\r\n")
        if not as_json:
            yield Row(line)
        elif line.strip():
            yield _from_json(line, number, options, fields, kept, name)


def _from_json(
    line: str,
    number: int,
    options: DataOptions,
    fields: list[str] | None,
    kept: Sequence[str],
    name: str,
) -> Row:
    from longtail.data.json_lines import parse_record
    from longtail.data.place import Place

    place = Place(name, number)
    record = parse_record(line, place)
    wanted = fields or (options.text_column or "text").split(",")
    values = {field: record.get(field) or "" for field in wanted}
    have = ", ".join(list(record)[:20]) or "none"
    if not any(field in record for field in wanted):
        raise place.error(
            f"no field {' or '.join(wanted)}: the fields are {have} (use --text-column)"
        )
    for field, value in values.items():
        if not isinstance(value, str):
            raise place.error(f"{field}: expected a text, got {value!r}")
    for field in kept:
        if field not in record:
            raise place.error(f"no field {field}: the fields are {have}")
    text = values if fields else " ".join(value for value in values.values() if value)
    return Row(text, [record[field] for field in kept])


def batches(rows: Iterator[Row], size: int, *, quick: bool) -> Iterator[list[Row]]:
    """Yield lists of up to ``size`` rows. ``quick``: one at a time, for a person who types them."""
    size = 1 if quick else size
    while batch := list(islice(rows, size)):
        yield batch
