"""Tables of texts and labels: CSV, TSV, JSON Lines, Parquet, and data frames in memory.

    .csv    comma-separated after RFC 4180: a header line, fields quoted with ", quotes doubled;
            a quoted field may hold line breaks; blank lines are skipped
    .tsv    the same with tabs
    .jsonl  (or .ndjson, .json) one JSON object per line; ``unseen_labels``, where a record lists
            them, are true labels outside the label set: they are counted, not named
    .parquet  read in batches with pyarrow (the ``tables`` extra)

The first three may be gzip (``.csv.gz``). In memory: a pandas DataFrame, a pyarrow Table or
RecordBatch, or anything with ``to_arrow()`` (polars). The text may be spread over several columns;
``longtail.data.cells`` says what a cell may hold.

Refuses a column that is not there, rows with another number of fields than the header, and cells
that are neither text nor labels, with the line (or row) they stand in.
"""

from __future__ import annotations

import codecs
import csv
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from longtail._lines import FilePath, open_for_writing
from longtail.data.cells import check_separator, label_names, text_from
from longtail.data.json_lines import write_json_lines
from longtail.data.records import Record, texts_and_labels
from longtail.data.table_rows import table_format, table_rows
from longtail.exceptions import MissingDependencyError

__all__ = ["iter_table", "read_table", "write_table"]


def iter_table(
    source: Any,
    *,
    text_column: str | Sequence[str] = "text",
    label_column: str | None = "labels",
    label_separator: str | None = None,
    text_joiner: str = " ",
    delimiter: str | None = None,
    by_field: bool = False,
) -> Iterator[Record]:
    """Yield one ``Record`` per row.

    Parameters
    ----------
    source : path or table
        A file, or a table in memory.
    text_column : str or sequence of str, default="text"
        One column, or several, whose texts are joined by ``text_joiner``.
    label_column : str or None, default="labels"
        None for a table without labels.
    label_separator : str, default=None
        Where to split label cells that are strings.
    text_joiner : str, default=" "
        What stands between the texts of several columns.
    delimiter : str, default=None
        What stands between cells, instead of "," or a tab.
    by_field : bool, default=False
        Also keep the text of every text column by itself, as a field.

    Yields
    ------
    Record
    """
    text_columns = [text_column] if isinstance(text_column, str) else list(text_column)
    if not text_columns:
        raise ValueError("text_column names no column")
    columns = text_columns + ([] if label_column is None else [label_column])
    check_separator(label_separator)
    width = len(text_columns)
    suspects: Counter[str] = Counter()
    n_plain = n_split = 0
    for place, cells, n_unseen in table_rows(source, columns, delimiter):
        try:
            text = text_from(cells[:width], text_joiner)
        except ValueError as error:
            raise place.error(f"{' or '.join(text_columns)}: {error}") from None
        fields = None
        if by_field:
            parts = (text_from([cell], "") for cell in cells[:width])
            fields = dict(zip(text_columns, parts, strict=True))
        labels: list[str] = []
        if label_column is not None:
            try:
                labels = label_names(cells[width], label_separator)
            except ValueError as error:
                raise place.error(f"{label_column}: {error}") from None
            cell = cells[width]
            if isinstance(cell, str) and labels == [cell.strip()]:
                n_plain += 1
                suspects.update(mark for mark in "|;," if mark in cell)
            elif isinstance(cell, str) and label_separator is not None:
                n_split += label_separator in cell
        yield Record(text, labels, place, n_unseen, fields)
    if not n_split:
        _warn_of_separator(label_separator, suspects, n_plain, label_column)


def _warn_of_separator(
    separator: str | None, suspects: Counter[str], n_plain: int, column: str | None
) -> None:
    """Warn of label cells that were all read as one label, where another reading is likely."""
    for mark, count in suspects.most_common(1):
        if 2 * count > n_plain:
            warnings.warn(
                f"most cells of {column!r} hold {mark!r} and were read as one label each: "
                f"pass label_separator={mark!r} if they hold several",
                stacklevel=3,
            )
            return
    if separator is not None and n_plain:
        warnings.warn(
            f"label_separator={separator!r} stands in no cell of {column!r}: every row has one "
            "label at most",
            stacklevel=3,
        )


def read_table(source: Any, **options: Any) -> tuple[list[str], list[list[str]]]:
    """Return ``(texts, label lists)`` of a whole table; the options are those of ``iter_table``.

    Parameters
    ----------
    source : path or table
        A file, or a table in memory.
    **options : object
        Those of ``iter_table``.

    >>> import pandas
    >>> read_table(pandas.DataFrame({"text": ["a cat"], "labels": [["pet", "mammal"]]}))
    (['a cat'], [['pet', 'mammal']])
    """
    return texts_and_labels(iter_table(source, **options))


def write_table(
    path: FilePath,
    texts: Iterable[str],
    label_lists: Iterable[Sequence[str]],
    *,
    text_column: str = "text",
    label_column: str = "labels",
    label_separator: str | None = None,
) -> None:
    """Write a table in the format that the name of ``path`` asks for.

    In CSV and TSV a label cell is a JSON list, or the names joined by ``label_separator`` (a name
    that holds the separator, or begins or ends with a blank, is then refused).

    Parameters
    ----------
    path : str or path
        The file; its name tells the format.
    texts : iterable of str
        One text per row.
    label_lists : iterable
        Names of the labels of each row.
    text_column : str, default="text"
        Name of the column of texts.
    label_column : str, default="labels"
        Name of the column of labels.
    label_separator : str, default=None
        What stands between labels; None writes a JSON list.
    """
    kind = table_format(path)
    rows = zip(texts, label_lists, strict=True)
    if kind == "jsonl":
        write_json_lines(path, ({text_column: t, label_column: list(names)} for t, names in rows))
    elif kind == "parquet":
        _write_parquet(path, rows, text_column, label_column)
    else:
        with open_for_writing(path) as file:
            delimiter = "\t" if kind == "tsv" else ","
            encoder = codecs.getwriter("utf-8")(file)
            writer = csv.writer(encoder, delimiter=delimiter, lineterminator="\r\n")
            writer.writerow([text_column, label_column])
            writer.writerows((t, _label_cell(names, label_separator)) for t, names in rows)


def _label_cell(names: Sequence[str], separator: str | None) -> str:
    if separator is None:
        return json.dumps(list(names), ensure_ascii=False)
    for name in names:
        if separator in name or name != name.strip() or not name:
            raise ValueError(
                f"the label name {name!r} cannot be written with {separator!r} between"
            )
    return separator.join(names)


def _write_parquet(
    path: FilePath, rows: Iterable[Any], text_column: str, label_column: str
) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDependencyError("pyarrow", "tables", "writing Parquet") from None
    texts, label_lists = [], []
    for text, names in rows:
        texts.append(text)
        label_lists.append(list(names))
    columns = {
        text_column: pa.array(texts, pa.string()),
        label_column: pa.array(label_lists, pa.list_(pa.string())),
    }
    with open_for_writing(path) as file:
        pq.write_table(pa.table(columns), file)
