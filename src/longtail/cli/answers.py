"""Answers of ``predict`` in a file that joins back to the texts.

One row per text, or one per answer; as JSON lines, CSV, TSV, Parquet or, for people, a table. The
first columns tell which text a row is about: the column of ids, or the number of the text from 0;
then come the columns that were to be kept.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from longtail.exceptions import MissingDependencyError

__all__ = ["FORMATS", "Answered", "Layout", "Writer", "format_of", "open_writer"]

FORMATS = ("jsonl", "csv", "tsv", "parquet", "table")
_DIGITS = 6


@dataclass(frozen=True)
class Layout:
    """How answers are laid out.

    ``columns``: names of the cells that travel with a text; ``numbered``: whether its number does,
    in a column ``row``; ``per_label``: one row per answer; ``separator``: between the labels of a
    cell; ``label_texts``: what each label is called in words, by name, where the model knows it.
    """

    columns: Sequence[str] = ()
    numbered: bool = True
    per_label: bool = False
    separator: str = ";"
    label_texts: dict[str, str] | None = None

    @property
    def heads(self) -> list[str]:
        """Names of the columns, for formats that have some."""
        answers = ["labels", "scores"]
        if self.per_label:
            texts = [] if self.label_texts is None else ["label_text"]
            answers = ["rank", "label", "score", *texts]
        return [*(["row"] if self.numbered else []), *self.columns, *map(self.own, answers)]

    def own(self, name: str) -> str:
        """Return the name of a column of answers, which no kept column has."""
        return f"predicted_{name}" if name in self.columns else name


@dataclass(frozen=True)
class Answered:
    """A text with its number, the cells that travel with it, and its labels, best first."""

    number: int
    text: str
    kept: Sequence[Any]
    labels: Sequence[tuple[str, float]]


def format_of(output: str | None, wanted: str | None) -> str:
    """Return the format to write: as wanted, or by the name of the output.

    Raises ValueError for a name that does not tell.
    """
    if wanted is not None:
        if wanted not in FORMATS:
            raise ValueError(f"unknown format {wanted!r}: use {', '.join(FORMATS)}")
        return wanted
    if output is None or output == "-":
        return "table" if sys.stdout.isatty() else "jsonl"
    from longtail.data.table_rows import is_table_name, table_format

    if not is_table_name(output):
        raise ValueError(
            f"{output}: the name does not tell the format: end it in .csv, .tsv, .jsonl or "
            ".parquet, or pass --format"
        )
    return table_format(output)


class Writer(ABC):
    """Writes answers as they come, a batch at a time."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    @abstractmethod
    def write(self, answers: Sequence[Answered]) -> None:
        """Write a batch, through to the file."""

    def rows(self, answers: Iterable[Answered]) -> Iterator[list[Any]]:
        """Yield the cells of the lines of a batch, before they are put into a format."""
        for one in answers:
            before = [*([one.number] if self.layout.numbered else []), *one.kept]
            if not self.layout.per_label:
                names = [name for name, _ in one.labels]
                yield [*before, names, [round(score, _DIGITS) for _, score in one.labels]]
                continue
            for rank, (name, score) in enumerate(one.labels, 1):
                line = [*before, rank, name, round(score, _DIGITS)]
                if self.layout.label_texts is not None:
                    line.append(self.layout.label_texts.get(name, ""))
                yield line


class _JsonLines(Writer):
    """One object a line: the kept cells, the text, and its labels as objects."""

    def __init__(self, file: TextIO, layout: Layout) -> None:
        super().__init__(layout)
        self.file = file

    def write(self, answers: Sequence[Answered]) -> None:
        for record in self._records(answers):
            self.file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
        self.file.flush()

    def _records(self, answers: Sequence[Answered]) -> Iterator[dict[str, Any]]:
        if self.layout.per_label:
            for line in self.rows(answers):
                yield dict(zip(self.layout.heads, line, strict=True))
            return
        for one in answers:
            labels = []
            for name, score in one.labels:
                item = {"label": name, "score": round(score, _DIGITS)}
                if self.layout.label_texts is not None:
                    item["text"] = self.layout.label_texts.get(name, "")
                labels.append(item)
            kept = dict(zip(self.layout.columns, one.kept, strict=True))
            text = {} if "text" in kept else {"text": one.text}
            yield {**kept, **text, self.layout.own("labels"): labels}


class _Csv(Writer):
    def __init__(self, file: TextIO, layout: Layout, delimiter: str) -> None:
        super().__init__(layout)
        self.file = file
        self.lines = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self.lines.writerow(layout.heads)

    def write(self, answers: Sequence[Answered]) -> None:
        for line in self.rows(answers):
            self.lines.writerow([self._cell(cell) for cell in line])
        self.file.flush()

    def _cell(self, cell: Any) -> Any:
        if isinstance(cell, list) and all(isinstance(item, (str, float)) for item in cell):
            parts = [item if isinstance(item, str) else f"{item:.6g}" for item in cell]
            return self.layout.separator.join(parts)
        if isinstance(cell, (dict, list)):
            return json.dumps(cell, ensure_ascii=False, default=str)
        return f"{cell:.6g}" if isinstance(cell, float) else cell


class _Table(Writer):
    """For people: the text, and its labels below it."""

    def __init__(self, file: TextIO, layout: Layout) -> None:
        super().__init__(layout)
        self.file = file

    def write(self, answers: Sequence[Answered]) -> None:
        for one in answers:
            line = " ".join([*(f"{cell}" for cell in one.kept), *one.text.split()])
            self.file.write((line if len(line) <= 79 else line[:78] + "…") + "\n")
            for name, score in one.labels:
                text = "" if self.layout.label_texts is None else self.layout.label_texts.get(name)
                self.file.write(f"  {score:8.4f}  {name}{f'  {text}' if text else ''}\n")
            if not one.labels:
                self.file.write("  no label\n")
        self.file.flush()


class _Parquet(Writer):
    """One row group a batch. The first batch decides the types of the kept columns."""

    def __init__(self, path: str, layout: Layout) -> None:
        super().__init__(layout)
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise MissingDependencyError("pyarrow", "tables", "writing Parquet") from None
        self.arrow, self.path = pyarrow, path
        self.file: Any = None
        self.schema: Any = None

    def write(self, answers: Sequence[Answered]) -> None:
        pa = self.arrow
        lines = [[_plain(cell) for cell in line] for line in self.rows(answers)]
        columns = list(zip(*lines, strict=True)) or [()] * len(self.layout.heads)
        if self.schema is None:
            heads = self.layout.heads
            self.schema = pa.schema(list(zip(heads, map(self._type, heads, columns), strict=True)))
            self.file = pa.parquet.ParquetWriter(self.path, self.schema)
        try:
            arrays = [
                pa.array(list(column), kind)
                for column, kind in zip(columns, self.schema.types, strict=True)
            ]
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ValueError(
                f"a kept column holds values of several kinds: write .jsonl or .csv ({error})"
            ) from None
        self.file.write_table(pa.table(arrays, schema=self.schema))

    def _type(self, name: str, column: Sequence[Any]) -> Any:
        pa = self.arrow
        known = {
            "labels": pa.list_(pa.string()),
            "scores": pa.list_(pa.float64()),
            "rank": pa.int64(),
            "label": pa.string(),
            "score": pa.float64(),
            "label_text": pa.string(),
            "row": pa.int64(),
        }
        if name not in self.layout.columns:
            return known[name.removeprefix("predicted_")]
        try:
            found = pa.array(list(column)).type
        except (pa.ArrowException, TypeError, ValueError):
            return pa.string()
        return pa.string() if pa.types.is_null(found) else found

    def close(self) -> None:
        if self.file is None:
            self.write([])
        self.file.close()


def _plain(cell: Any) -> Any:
    """Return a cell for Parquet: objects as JSON, all else as it is."""
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, dict) else cell


@contextlib.contextmanager
def open_writer(
    kind: str, path: str | None, layout: Layout, *, append: bool = False
) -> Iterator[Writer]:
    """Open the writer of a format, to a file or to standard output; packed where its name ends in
    .gz.

    A Parquet file, and a packed one, appears under its name only when it is whole.
    """
    if kind == "parquet":
        if path is None or path == "-":
            raise ValueError("Parquet needs a file: give one with --output")
        part = f"{path}.part"
        made = _Parquet(part, layout)
        try:
            yield made
            made.close()
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
            raise
        return
    with _text(path, append) as file:
        if kind == "jsonl":
            yield _JsonLines(file, layout)
        elif kind == "table":
            yield _Table(file, layout)
        else:
            yield _Csv(file, layout, "\t" if kind == "tsv" else ",")


@contextlib.contextmanager
def _text(path: str | None, append: bool) -> Iterator[TextIO]:
    if path is None or path == "-":
        yield sys.stdout
    elif path.endswith(".gz"):
        from longtail._lines import open_for_writing

        with open_for_writing(path) as packed:
            text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
            yield text
            text.flush()
            text.detach()
    else:
        with open(path, "a" if append else "w", encoding="utf-8", newline="") as file:
            yield file
