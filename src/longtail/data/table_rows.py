"""Rows of a table, whatever it is stored in: the chosen cells of each row, and where it stands."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from longtail.data.json_lines import read_json_lines
from longtail.data.lines import FilePath, read_lines
from longtail.data.place import Place, brief
from longtail.exceptions import DataFormatError, MissingDependencyError

__all__ = ["is_table", "is_table_name", "table_format", "table_rows"]

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
    """Whether the name of a file is that of a table."""
    return _suffix(path) in _FORMATS


def table_format(path: FilePath) -> str:
    """The format that a name asks for ("csv", "tsv", "jsonl" or "parquet"), ``.gz`` set aside."""
    if not is_table_name(path):
        raise ValueError(
            f"{os.fspath(path)}: expected a name that ends in {', '.join(_FORMATS)} (or .gz of it)"
        )
    return _FORMATS[_suffix(path)]


def is_table(source: Any) -> bool:
    """Whether ``source`` is a table in memory, and not a path."""
    return hasattr(source, "columns") or hasattr(source, "to_arrow")


def table_rows(source: Any, columns: Sequence[str], delimiter: str | None = None) -> Iterator[Row]:
    """Yields ``(place, cells in the order of columns, number of unseen labels)`` for each row."""
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


def _positions(found: Sequence[Any], columns: Sequence[str], place: Place) -> list[int]:
    names = list(found)
    for column in columns:
        if names.count(column) != 1:
            what = "no column" if column not in names else "more than one column"
            have = ", ".join(map(brief, names[:20]))
            raise place.error(
                f"{what} {column!r}: the columns are {have or 'none'} "
                "(say which to use with text_column and label_column)"
            )
    return [names.index(column) for column in columns]


def _csv_rows(path: FilePath, columns: Sequence[str], delimiter: str) -> Iterator[Row]:
    lines = (line for _, line in read_lines(path, keep_ends=True))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
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
            raise DataFormatError(
                f"expected a row of fields: {error}", path=path, line=max(start, reader.line_num)
            ) from None
        place, start = Place(os.fspath(path), start), reader.line_num + 1
        if not row:
            continue
        if header is None:
            header, positions = row, _positions(row, columns, place)
        elif len(row) != len(header):
            raise place.error(f"expected {len(header)} fields, as in the header, got {len(row)}")
        else:
            yield place, [row[i] for i in positions], 0
    if header is None:
        raise DataFormatError("expected a header line, the file is empty", path=path, line=1)


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """The csv module refuses fields above 128 KiB; its limit is global, so it is put back."""
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
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDependencyError("pyarrow", "tables", "reading Parquet") from None
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
