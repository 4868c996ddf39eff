"""Texts for prediction, one after the other, without holding them all."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from longtail.cli.reading import DataOptions

__all__ = ["batches", "texts_from"]


def texts_from(source: str, options: DataOptions, fields: list[str] | None) -> Iterator[Any]:
    """Texts of a file, or of standard input (``-``): strings, or mappings where there are fields.

    Standard input and files that are no table hold one text a line, or one JSON object a line where
    the first line is one. A table gives its text column.
    """
    from longtail.data.table_rows import is_table_name

    if source == "-":
        if sys.stdin.isatty():
            print("reading texts, one a line; end with Ctrl-D", file=sys.stderr)
        stream = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="\n")
        yield from _from_lines(stream, options, fields, "<standard input>")
    elif is_table_name(source):
        yield from _from_table(source, options, fields)
    else:
        from longtail.data.lines import read_lines

        lines = (line for _, line in read_lines(source))
        yield from _from_lines(lines, options, fields, source)


def _from_table(path: str, options: DataOptions, fields: list[str] | None) -> Iterator[Any]:
    from longtail.data.tables import iter_table

    given = {k: v for k, v in options.given().items() if k in ("text_column", "delimiter")}
    if fields is None:
        for record in iter_table(path, label_column=None, **given):
            yield record.text
        return
    given.pop("text_column", None)
    columns = [iter_table(path, label_column=None, text_column=f, **given) for f in fields]
    for row in zip(*columns, strict=True):
        yield {field: record.text for field, record in zip(fields, row, strict=True)}


def _from_lines(
    lines: Iterable[str], options: DataOptions, fields: list[str] | None, name: str
) -> Iterator[Any]:
    numbered = enumerate(lines, 1)
    first = next(numbered, None)
    if first is None:
        return
    as_json = first[1].lstrip().startswith("{")
    for number, line in chain([first], numbered):
        line = line.rstrip("\r\n")
        if not as_json:
            yield line
        elif line.strip():
            yield _from_json(line, number, options, fields, name)


def _from_json(
    line: str, number: int, options: DataOptions, fields: list[str] | None, name: str
) -> Any:
    from longtail.data.json_lines import parse_record
    from longtail.data.place import Place

    place = Place(name, number)
    record = parse_record(line, place)
    wanted = fields or (options.text_column or "text").split(",")
    values = {field: record.get(field) or "" for field in wanted}
    if not any(field in record for field in wanted):
        have = ", ".join(list(record)[:20]) or "none"
        raise place.error(
            f"no field {' or '.join(wanted)}: the fields are {have} (use --text-column)"
        )
    for field, value in values.items():
        if not isinstance(value, str):
            raise place.error(f"{field}: expected a text, got {value!r}")
    return values if fields else " ".join(value for value in values.values() if value)


def batches(texts: Iterator[Any], size: int, *, quick: bool) -> Iterator[list[Any]]:
    """Lists of up to ``size`` texts. ``quick``: one at a time, for a person who types them."""
    size = 1 if quick else size
    while batch := list(islice(texts, size)):
        yield batch
