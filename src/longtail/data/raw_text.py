"""The raw-text layout of AttentionXML: texts and labels in two files, row by row.

    train_texts.txt    one text per line
    train_labels.txt   the labels of that text, separated by blanks; an empty line has no label
    test_texts.txt, test_labels.txt (and valid_…) likewise

Files may be gzip. Where only ``train_raw_texts.txt`` is there, it is read instead. The label set is
every name in the folder, in sorted order (the order of scikit-learn's MultiLabelBinarizer, which
AttentionXML uses), unless ``labels.txt`` or ``labels.jsonl`` gives it.

Refuses two files of a split with different numbers of lines. Neither a text with a line break nor a
name with a blank can be written.
"""

from __future__ import annotations

import itertools
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
    "iter_raw_text",
    "read_raw_text",
    "read_raw_text_folder",
    "write_raw_text",
    "write_raw_text_folder",
]

TEXTS = ("{}_texts.txt", "{}_raw_texts.txt")
LABELS = ("{}_labels.txt",)
_BLANKS = re.compile(r"[ \t]+")


def iter_raw_text(texts_path: FilePath, labels_path: FilePath) -> Iterator[Record]:
    """Yield one ``Record`` per line pair."""
    pairs = itertools.zip_longest(read_lines(texts_path), read_lines(labels_path))
    for row, (text, labels) in enumerate(pairs, 1):
        if text is None or labels is None:
            longer, shorter = (
                (labels_path, texts_path) if text is None else (texts_path, labels_path)
            )
            raise DataFormatError(
                f"expected {row - 1} lines, as in {shorter}: every text needs its line of labels",
                path=longer,
                line=row,
            )
        names = [name for name in _BLANKS.split(labels[1]) if name]
        yield Record(text[1], names, Place(str(labels_path), row))


def read_raw_text(texts_path: FilePath, labels_path: FilePath) -> tuple[list[str], list[list[str]]]:
    """Return ``(texts, label lists)`` of one split.

    Parameters
    ----------
    texts_path : str or path
        File of texts, one per line.
    labels_path : str or path
        File of labels, one row per line.
    """
    return texts_and_labels(iter_raw_text(texts_path, labels_path))


def write_raw_text(
    texts_path: FilePath,
    labels_path: FilePath,
    texts: Iterable[str],
    label_lists: Iterable[Sequence[str]],
) -> None:
    """Write the two files of one split.

    Parameters
    ----------
    texts_path : str or path
        File of texts, one per line.
    labels_path : str or path
        File of labels, one row per line.
    texts : iterable of str
        One text per row.
    label_lists : iterable
        Names of the labels of each row.
    """
    write_lines(texts_path, texts)
    write_lines(labels_path, (" ".join(map(_checked, names)) for names in label_lists))


def _checked(name: str) -> str:
    if not name or _BLANKS.search(name):
        raise ValueError(f"the label name {name!r} is empty or holds a blank: this format cannot")
    return name


def read_raw_text_folder(folder: FilePath, *, label_text_field: str = "text") -> Dataset:
    """Read every split of the folder; ``X`` stays None.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    label_text_field : str, default="text"
        Field of the label file that label texts come from.
    """
    texts, labels = find_splits(folder, *TEXTS), find_splits(folder, *LABELS)
    missing = set(texts) ^ set(labels)
    if missing:
        raise DataFormatError(
            f"expected both texts and labels for {', '.join(sorted(missing))}, found one file",
            path=folder,
        )
    streams = {split: iter_raw_text(texts[split], labels[split]) for split in texts}
    return read_record_folder(folder, streams, label_text_field=label_text_field)


def write_raw_text_folder(folder: FilePath, dataset: Dataset) -> None:
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
        texts_path, labels_path = target / f"{name}_texts.txt", target / f"{name}_labels.txt"
        write_raw_text(texts_path, labels_path, texts, label_lists)
    write_label_file(target / "labels.jsonl", list(dataset.vocabulary), dataset.label_texts)
