"""Rows of a table, whatever it is stored in: the chosen cells of each row, and where it stands."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from longtail._lines import FilePath, read_lines
from longtail.data.json_lines import read_json_lines
from longtail.data.place import Place, brief
from longtail.exceptions import DataFormatError, MissingDependencyError

__all__ = ["column_names", "is_table", "is_table_name", "table_format", "table_rows"]

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
_BATCH = 4096
_LONGEST_FIELD = 1 << 30


Row = tuple[Place, Sequence[Any], int]


def _suffix(path: FilePath) -> str:
    return os.path.splitext(os.fspath(path).lower().removesuffix(".gz"))[1]


def is_table_name(path: FilePath) -> bool:
    """Return whether the name of a file is that of a table."""
    return _suffix(path) in _FORMATS


def table_format(path: FilePath) -> str:
    """Return the format that a name asks for ("csv", "tsv", "jsonl" or "parquet"), ``.gz`` set
    aside.
    """
    if not is_table_name(path):
        raise ValueError(
            f"{os.fspath(path)}: expected a name that ends in {', '.join(_FORMATS)} (or .gz of it)"
        )
    return _FORMATS[_suffix(path)]


def is_table(source: Any) -> bool:
    """Return whether ``source`` is a table in memory, and not a path."""
    return hasattr(source, "columns") or hasattr(source, "to_arrow")


def column_names(path: FilePath, delimiter: str | None = None) -> list[str]:
    """Return names of the columns of a CSV, TSV or Parquet file."""
    kind = table_format(path)
    if kind == "parquet":
        pq = _parquet()
        with pq.ParquetFile(path) as file:
            return list(file.schema_arrow.names)
    lines = (line for _, line in read_lines(path, keep_ends=True))
    mark = delimiter or ("\t" if kind == "tsv" else ",")
    return next((row for row in csv.reader(lines, delimiter=mark) if row), [])


def table_rows(source: Any, columns: Sequence[str], delimiter: str | None = None) -> Iterator[Row]:
    """Yield ``(place, cells in the order of columns, number of unseen labels)`` for each row."""
    if isinstance(source, (str, os.PathLike)):
        kind = table_format(source)
        if kind == "jsonl":
            yield from _json_rows(source, columns)
        elif kind == "parquet":
            yield from _parquet_rows(source, columns)
        else:
            yield from _csv_rows(source, columns, delimiter or ("\t" if kind == "tsv" else ","))
    elif hasattr(source, "to_batches"):  # a pyarrow Table
        yield from _arrow_rows("<table>", source.column_names, source.to_batches(_BATCH), columns)
    elif hasattr(source, "to_pylist"):  # a pyarrow RecordBatch
        yield from _arrow_rows("<table>", source.schema.names, [source], columns)
    elif hasattr(source, "to_arrow"):  # polars
        yield from table_rows(source.to_arrow(), columns)
    elif hasattr(source, "columns") and hasattr(source, "iloc"):  # pandas
        yield from _frame_rows(source, columns)
    else:
        raise TypeError(
            f"expected a path, a pandas DataFrame or a pyarrow Table, got {type(source).__name__}"
        )


def _positions(
    found: Sequence[Any], columns: Sequence[str], place: Place, delimiter: str | None = None
) -> list[int]:
    names = list(found)
    for column in columns:
        if names.count(column) != 1:
            what = "no column" if column not in names else "more than one column"
            have = ", ".join(map(brief, names[:20]))
            raise place.error(
                f"{what} {column!r}: the columns are {have or 'none'} "
                f"({_advice(names, delimiter)}say which to use with text_column and "
                "label_column)"
            )
    return [names.index(column) for column in columns]


def _advice(header: Sequence[str], delimiter: str | None) -> str:
    """Return what to do about a header that seems to be split at another mark, or to be UTF-16."""
    if delimiter is None or not header:
        return ""
    if all("\0" in name for name in header):
        return "the file seems to be UTF-16: convert it first, with iconv -f utf-16 -t utf-8; else "
    counts = {
        mark: sum(name.count(mark) for name in header) for mark in ";,\t|" if mark != delimiter
    }
    likely = max(counts, key=lambda mark: counts[mark])
    if counts[likely] < len(header):
        return ""
    return f"its cells seem to stand between {likely!r}: pass delimiter={likely!r}; else "


def _csv_rows(path: FilePath, columns: Sequence[str], delimiter: str) -> Iterator[Row]:
    record: list[str] = []  # the lines of the row that is being read
    reader = csv.reader(_remembered(path, record), delimiter=delimiter, strict=True)
    positions: list[int] = []
    header: list[str] | None = None
    start = 1
    while True:
        try:
            with _long_fields():
                row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            raise _csv_error(error, Place(os.fspath(path), start), record, delimiter) from None
        record.clear()
        place, start = Place(os.fspath(path), start), reader.line_num + 1
        if not row:
            continue
        if header is None:
            header, positions = row, _positions(row, columns, place, delimiter)
        elif len(row) != len(header):
            raise place.error(f"expected {len(header)} fields, as in the header, got {len(row)}")
        else:
            yield place, [row[i] for i in positions], 0
    if header is None:
        raise DataFormatError("expected a header line, the file is empty", path=path, line=1)


def _remembered(path: FilePath, record: list[str]) -> Iterator[str]:
    """Yield the lines of a file, each also put at the end of ``record``, which the caller
    empties.
    """
    for _, line in read_lines(path, keep_ends=True):
        record.append(line)
        yield line


def _csv_error(
    error: csv.Error, place: Place, record: Sequence[str], delimiter: str
) -> DataFormatError:
    """Return what is wrong with the row ``record``, which begins at ``place``.

    Where a quoted field is to blame, the error stands where the field begins: a quote that is
    not closed is noticed only at the next one, or at the end of the file.
    """
    opened = _open_quote(record, delimiter)
    if opened is None:
        last = place._replace(line=(place.line or 1) + max(len(record) - 1, 0))
        return last.error(f"expected a row of fields: {error}")
    line, column = opened
    what = "is never closed" if "end of data" in str(error) else f"does not end well ({error})"
    return place._replace(line=(place.line or 1) + line).error(
        f'the quote (") that begins here {what}: close it, or double it where it belongs to the '
        "text",
        column + 1,
    )


def _open_quote(record: Sequence[str], delimiter: str) -> tuple[int, int] | None:
    """Return the line and column, from 0, where the last quoted field of a row begins."""
    found = None
    state = "start"  # of a field; or "plain", "quoted", and "closed" after a quote inside one
    for number, line in enumerate(record):
        for column, mark in enumerate(line):
            if state == "quoted":
                state = "closed" if mark == '"' else "quoted"
            elif mark == '"' and state != "plain":
                found = (number, column) if state == "start" else found  # else it is doubled
                state = "quoted"
            else:
                state = "start" if mark in (delimiter, "\r", "\n") else "plain"
    return found


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """Let the csv module read fields above 128 KiB; its limit is global, so it is put back."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _json_rows(path: FilePath, columns: Sequence[str]) -> Iterator[Row]:
    name = os.fspath(path)
    for line, record in read_json_lines(path):
        place = Place(name, line)
        unseen = record.get("unseen_labels", ())
        if not isinstance(unseen, (list, tuple)):
            raise place.error(f"expected unseen_labels to be a list, got {brief(unseen)}")
        try:
            cells = [record[column] for column in columns]
        except KeyError as error:
            fields = ", ".join(map(brief, islice(record, 20))) or "none"
            raise place.error(
                f"no field {error}: the fields are {fields} "
                "(say which to use with text_column and label_column)"
            ) from None
        yield place, cells, len(unseen)


def _parquet_rows(path: FilePath, columns: Sequence[str]) -> Iterator[Row]:
    pq = _parquet()
    import pyarrow as pa

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _positions(names, columns, Place(os.fspath(path)))
            batches = file.iter_batches(_BATCH, columns=list(dict.fromkeys(columns)))
            yield from _arrow_rows(os.fspath(path), None, batches, columns)
    except (DataFormatError, FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataFormatError(f"not a readable Parquet file: {error!s:.200}", path=path) from None


def _parquet() -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDependencyError("pyarrow", "tables", "reading Parquet") from None
    return pq


def _arrow_rows(
    path: str, names: Sequence[str] | None, batches: Any, columns: Sequence[str]
) -> Iterator[Row]:
    if names is not None:
        _positions(names, columns, Place(path))
    row = 0
    for batch in batches:
        positions = [batch.schema.names.index(column) for column in columns]
        try:
            lists = [batch.column(i).to_pylist() for i in positions]
        except (ValueError, OverflowError) as error:  # such as strings that are not UTF-8
            message = f"a cell from here on cannot be read: {error!s:.200}"
            raise Place(path, None, row).error(message) from None
        for cells in zip(*lists, strict=True):
            yield Place(path, None, row), cells, 0
            row += 1


def _frame_rows(frame: Any, columns: Sequence[str]) -> Iterator[Row]:
    positions = _positions(list(frame.columns), columns, Place("<DataFrame>"))
    lists = [frame.iloc[:, i].tolist() for i in positions]
    for row, cells in enumerate(zip(*lists, strict=True)):
        yield Place("<DataFrame>", None, row), cells, 0
