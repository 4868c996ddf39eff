"""Label files: the names, and perhaps the texts, of the labels in id order.

    labels.txt     one name per line; label i stands on line i + 1
    labels.jsonl   one object a line: {"label": name, "text": text}; other fields are ignored
    labels.tsv     a name, a tab and its text a line; a first line ``label<tab>text`` is a heading

All may be gzip. Names are unique and not empty, and taken literally: surrounding blanks belong to
them. A ``text`` that is missing or null falls back to the name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from longtail._lines import FilePath, read_lines, write_lines
from longtail.data.json_lines import read_json_lines, write_json_lines
from longtail.data.layout import find_file
from longtail.data.place import Place, brief

__all__ = ["LabelFile", "find_label_file", "read_label_file", "write_label_file"]


class LabelFile(NamedTuple):
    """Names in id order; ``texts`` is None where the file has names only."""

    names: list[str]
    texts: list[str] | None


def read_label_file(path: FilePath, *, text_field: str = "text") -> LabelFile:
    """Read ``labels.txt``, ``labels.jsonl`` or ``labels.tsv`` (told by the name).

    ``text_field`` names another field of JSON lines to take label texts from, for files that carry
    them in more than one language; where a record lacks it, ``text`` serves. Files of labels that a
    data set does not know, such as ``unseen_labels.jsonl.gz``, are read in the same way.

    Refuses an empty, repeated or non-string name, a text that is not a string, and a line of a
    ``.tsv`` without a tab.

    Parameters
    ----------
    path : str or path
        Where the file is.
    text_field : str, default="text"
        Field that texts come from.
    """
    names: dict[str, int] = {}
    texts: list[Any] = []
    base = os.path.basename(os.fspath(path))
    with_texts, tabs = ".json" in base or ".tsv" in base, ".tsv" in base
    rows: Iterable[tuple[int, Any]] = read_json_lines(path) if ".json" in base else read_lines(path)
    for line, row in rows:
        if tabs:
            name, tab, text = row.partition("\t")
            if line == 1 and (name, text) == ("label", "text"):
                continue
            if not tab:
                raise Place(os.fspath(path), line).error("expected a label, a tab and its text")
            texts.append(text)
        elif isinstance(row, dict):
            name = row.get("label")
            text = row.get(text_field)
            text = row.get("text") if text is None else text
            texts.append(name if text is None else text)
        else:
            name = row
        place = Place(os.fspath(path), line)
        if not isinstance(name, str) or not name:
            raise place.error(f"expected a label name, got {brief(name)}")
        if texts and not isinstance(texts[-1], str):
            raise place.error(f"the text of {brief(name)} is not a string")
        first = names.setdefault(name, line)
        if first != line:
            raise place.error(f"the label name {brief(name)} occurs twice, first on line {first}")
    return LabelFile(list(names), texts if with_texts else None)


def write_label_file(
    path: FilePath, names: Sequence[str], texts: Sequence[str] | None = None
) -> None:
    """Write ``labels.jsonl`` or ``labels.txt``, by the name; only the former holds texts.

    Parameters
    ----------
    path : str or path
        Where the file is.
    names : sequence of str
        Names of labels, in the order of their ids.
    texts : list of str, default=None
        What labels are called in words.
    """
    if ".json" in os.path.basename(os.fspath(path)):
        texts = names if texts is None else texts
        rows = zip(names, texts, strict=True)
        write_json_lines(path, ({"label": name, "text": text} for name, text in rows))
    elif texts is not None:
        raise ValueError("labels.txt cannot hold label texts: write labels.jsonl instead")
    else:
        write_lines(path, names)


def find_label_file(folder: FilePath, *, text_field: str = "text") -> LabelFile | None:
    """Return the folder's ``labels.jsonl`` or ``labels.txt``, read; None where it has neither."""
    path = find_file(folder, "labels.jsonl", "labels.txt")
    return None if path is None else read_label_file(path, text_field=text_field)
