"""fastText lines: labels marked by a prefix, then the text.

    line    = *( label blank ) text
    label   = "__label__" name          name: one or more characters, no blank
    blank   = " " / TAB / VT / FF / CR / NUL

Every token that starts with the prefix is a label, wherever it stands, as in fastText; what remains
is the text. A line may lack labels, text or both. Files may be gzip.

Refuses a bare prefix with no name. When writing, refuses names with a blank, and texts that hold a
line break or a token that would be read as a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from longtail._lines import FilePath, read_lines, write_lines
from longtail.data.dataset import Dataset
from longtail.data.label_file import write_label_file
from longtail.data.layout import find_splits, make_folder
from longtail.data.place import Place
from longtail.data.records import (
    Record,
    named_splits,
    read_record_folder,
    texts_and_labels,
)
from longtail.exceptions import DataFormatError

__all__ = [
    "iter_fasttext",
    "read_fasttext",
    "read_fasttext_folder",
    "write_fasttext",
    "write_fasttext_folder",
]

PREFIX = "__label__"
_BLANK = "[ \t\v\f\r\0]"


def iter_fasttext(path: FilePath, *, prefix: str = PREFIX) -> Iterator[Record]:
    """Yield one ``Record`` per line."""
    token = _label_token(prefix)
    for number, line in read_lines(path):
        labels = []
        for match in token.finditer(line):
            if not match["name"]:
                raise DataFormatError(
                    f"expected a label name after {prefix}",
                    path=path,
                    line=number,
                    column=match.end("name") + 1,
                )
            labels.append(match["name"])
        text = token.sub("", line) if labels else line
        yield Record(text, labels, Place(str(path), number))


def read_fasttext(path: FilePath, *, prefix: str = PREFIX) -> tuple[list[str], list[list[str]]]:
    """Return ``(texts, label lists)`` of a whole file.

    Parameters
    ----------
    path : str or path
        Where the file is.
    prefix : str, default="__label__"
        What marks a label.
    """
    return texts_and_labels(iter_fasttext(path, prefix=prefix))


def _label_token(prefix: str) -> re.Pattern[str]:
    """Return a label and the blanks after it: they go, so that the text begins where the labels
    end.
    """
    if not prefix or re.search(_BLANK, prefix):
        raise ValueError(f"the label prefix must be a string without blanks, got {prefix!r}")
    return re.compile(
        f"(?:(?<={_BLANK})|^){re.escape(prefix)}(?P<name>(?:(?!{_BLANK}).)*){_BLANK}*", re.DOTALL
    )


def write_fasttext(
    path: FilePath,
    texts: Iterable[str],
    label_lists: Iterable[Sequence[str]],
    *,
    prefix: str = PREFIX,
) -> None:
    """Write one line per text, labels first.

    Parameters
    ----------
    path : str or path
        Where the file is.
    texts : iterable of str
        One text per row.
    label_lists : iterable
        Names of the labels of each row.
    prefix : str, default="__label__"
        What marks a label.
    """
    token = _label_token(prefix)

    def lines() -> Iterator[str]:
        for row, (text, names) in enumerate(zip(texts, label_lists, strict=True)):
            if token.search(text):
                raise ValueError(f"text {row} holds a word that starts with {prefix}")
            if names and re.match(_BLANK, text):
                raise ValueError(f"text {row} starts with a blank: strip it first")
            for name in names:
                if not name or re.search(_BLANK, name):
                    raise ValueError(f"the label name {name!r} is empty or holds a blank")
            yield " ".join([*(prefix + name for name in names), text])

    write_lines(path, lines())


def read_fasttext_folder(folder: FilePath, *, label_text_field: str = "text") -> Dataset:
    """Read ``train.txt``, ``test.txt`` and perhaps ``dev.txt``; ``X`` stays None.

    The label set is every name in the folder, sorted, unless a label file gives it.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    label_text_field : str, default="text"
        Field of the label file that label texts come from.
    """
    streams = {split: iter_fasttext(path) for split, path in find_splits(folder, "{}.txt").items()}
    return read_record_folder(folder, streams, label_text_field=label_text_field)


def write_fasttext_folder(folder: FilePath, dataset: Dataset) -> None:
    """Write every split, and ``labels.jsonl``, so that ids survive the round trip.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    dataset : Dataset
        What to write.
    """
    target = make_folder(folder)
    for name, texts, label_lists in named_splits(dataset):
        write_fasttext(target / f"{name}.txt", texts, label_lists)
    write_label_file(target / "labels.jsonl", list(dataset.vocabulary), dataset.label_texts)
