"""Answers as JSON lines, CSV or a table; notes for people on standard error."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

__all__ = ["FORMATS", "Writer", "check_free", "note", "open_output", "print_json", "writer"]

FORMATS = ("jsonl", "csv", "table")


def note(text: str) -> None:
    """A line for the person at the terminal; standard output stays for results."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def check_free(folder: Path, overwrite: bool) -> None:
    """Refuses a folder with something in it, before the work and not after it."""
    if folder.exists() and not overwrite and any(folder.iterdir() if folder.is_dir() else [1]):
        raise FileExistsError(f"{folder} exists: choose another folder, or pass --overwrite")


class Writer(ABC):
    """Writes ``(text, [(label, score), …])`` rows as they come."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    @abstractmethod
    def write(self, text: str, labels: Sequence[tuple[str, float]]) -> None:
        """One row."""

    def flush(self) -> None:
        self.file.flush()


class _JsonLines(Writer):
    def write(self, text: str, labels: Sequence[tuple[str, float]]) -> None:
        found = [{"label": name, "score": round(score, 6)} for name, score in labels]
        self.file.write(json.dumps({"text": text, "labels": found}, ensure_ascii=False) + "\n")


class _Csv(Writer):
    """One line an answer: the number of the text, its rank, label and score."""

    def __init__(self, file: TextIO, n_before: int) -> None:
        super().__init__(file)
        self.rows = csv.writer(file, lineterminator="\n")
        self.n = n_before
        if not n_before:
            self.rows.writerow(["row", "rank", "label", "score"])

    def write(self, text: str, labels: Sequence[tuple[str, float]]) -> None:
        for rank, (name, score) in enumerate(labels, 1):
            self.rows.writerow([self.n, rank, name, f"{score:.6g}"])
        self.n += 1


class _Table(Writer):
    def write(self, text: str, labels: Sequence[tuple[str, float]]) -> None:
        line = " ".join(text.split())
        self.file.write((line if len(line) <= 90 else line[:89] + "…") + "\n")
        for name, score in labels:
            self.file.write(f"  {score:8.4f}  {name}\n")
        if not labels:
            self.file.write("  no label\n")


def writer(kind: str, file: TextIO, n_before: int = 0) -> Writer:
    """The writer of a format; ``n_before`` rows were written by an earlier run."""
    if kind == "jsonl":
        return _JsonLines(file)
    if kind == "csv":
        return _Csv(file, n_before)
    if kind == "table":
        return _Table(file)
    raise ValueError(f"unknown format {kind!r}: use {', '.join(FORMATS)}")


@contextlib.contextmanager
def open_output(path: str | None, *, append: bool = False) -> Iterator[TextIO]:
    """A file, or standard output."""
    if path is None or path == "-":
        yield sys.stdout
        return
    with open(path, "a" if append else "w", encoding="utf-8", newline="") as file:
        yield file
