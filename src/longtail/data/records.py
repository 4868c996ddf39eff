"""Records: the stream that every text format yields, and how streams become splits.

A reader yields a ``Record`` for each row: its text, the names of its labels, and where it stood.
``splits_from_records`` turns the streams of a data set into splits over one label set without ever
holding the label names of more than one row: names become ids as they pass, 4 bytes per label.
``read_record_folder`` does so for a folder, with its label file where there is one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail._lines import FilePath
from longtail.answers.vocabulary import Vocabulary
from longtail.data.dataset import Dataset, Split
from longtail.data.label_file import find_label_file
from longtail.data.layout import assemble
from longtail.data.place import Place, brief

__all__ = [
    "Record",
    "named_splits",
    "read_record_folder",
    "splits_from_records",
    "texts_and_labels",
]


class Record(NamedTuple):
    """One row. ``n_unseen`` counts further true labels, which the source puts outside the set;
    ``fields`` are the parts of the text by name, where the reader keeps them apart.
    """

    text: str
    labels: Sequence[str]
    place: Place
    n_unseen: int = 0
    fields: Mapping[str, str] | None = None


def splits_from_records(
    streams: Mapping[str, Iterable[Record]], vocabulary: Vocabulary | None = None
) -> tuple[dict[str, Split], Vocabulary]:
    """Return splits with ``texts`` and ``Y``, and the label set.

    With a ``vocabulary`` the ids are its own: a label of "train" outside it is refused, and those
    of other splits are counted in ``Split.unknown_labels``. Without one, the label set is every
    name that occurs in any split, sorted by code point, so that ids do not depend on row order.

    >>> row = Record("a cat", ["pet", "mammal"], Place("animals.txt", 1))
    >>> splits, vocabulary = splits_from_records({"train": [row]})
    >>> vocabulary.names, splits["train"].Y.toarray().tolist()
    (('mammal', 'pet'), [[1.0, 1.0]])
    """
    ids = {} if vocabulary is None else {name: i for i, name in enumerate(vocabulary)}
    gathered = {}
    for split, records in streams.items():
        strict = vocabulary is not None and split == "train"
        gathered[split] = _gather(records, ids, grow=vocabulary is None, strict=strict)
    renumber = None
    if vocabulary is None:
        vocabulary = Vocabulary(sorted(ids))
        renumber = np.empty(len(ids), np.int32)
        renumber[np.fromiter((ids[name] for name in vocabulary), np.int64, len(ids))] = np.arange(
            len(ids), dtype=np.int32
        )
    splits = {}
    for split, (texts, fields, flat, ends, unknown) in gathered.items():
        labels = np.asarray(flat) if renumber is None else renumber[np.asarray(flat)]
        Y = sp.csr_matrix(
            (np.ones(len(labels), np.float32), labels, np.asarray(ends)),
            shape=(len(texts), len(vocabulary)),
        )
        Y.sort_indices()
        counts = np.asarray(unknown)
        known = counts if counts.any() else None
        splits[split] = Split(Y=Y, texts=texts, unknown_labels=known, fields=fields or None)
    return splits, vocabulary


def texts_and_labels(records: Iterable[Record]) -> tuple[list[str], list[list[str]]]:
    """Return ``(texts, label lists)`` of a whole stream, for those who want names and no ids."""
    texts, label_lists = [], []
    for record in records:
        texts.append(record.text)
        label_lists.append(list(record.labels))
    return texts, label_lists


def read_record_folder(
    folder: FilePath, streams: Mapping[str, Iterable[Record]], *, label_text_field: str = "text"
) -> Dataset:
    """Return the data set of a folder: its streams, with ids from ``labels.jsonl`` or
    ``labels.txt``.

    Where the folder has no label file, the label set is every name that occurs in it.
    """
    labels = find_label_file(folder, text_field=label_text_field)
    vocabulary = None if labels is None else Vocabulary(labels.names)
    splits, vocabulary = splits_from_records(streams, vocabulary)
    texts = None if labels is None else labels.texts
    return assemble(folder, splits, label_names=list(vocabulary), label_texts=texts)


def named_splits(dataset: Dataset) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield ``(split, texts, label lists)``, for writers of formats that hold texts and label
    names.
    """
    for name, split in dataset.splits.items():
        if split.texts is None or split.Y is None:
            raise ValueError(f"the {name} split has no texts or no labels: this format needs both")
        yield name, split.texts, dataset.vocabulary.decode(split.Y)


def _gather(
    records: Iterable[Record], ids: dict[str, int], *, grow: bool, strict: bool
) -> tuple[list[str], dict[str, list[str]], array[int], array[int], array[int]]:
    texts: list[str] = []
    columns: dict[str, list[str]] = {}
    flat, ends, unknown = array("i"), array("q", [0]), array("q")
    for text, labels, place, n_unseen, fields in records:
        strangers = 0
        try:
            row = {ids[name] for name in labels}
        except (KeyError, TypeError):  # some name is new, or no name at all
            row, strangers = _row_with_strangers(labels, ids, place, grow=grow, strict=strict)
        texts.append(text)
        for name, part in (fields or {}).items():
            columns.setdefault(name, []).append(part)
        flat.extend(row)
        ends.append(len(flat))
        unknown.append(strangers + n_unseen)
    return texts, columns, flat, ends, unknown


def _row_with_strangers(
    labels: Sequence[Any], ids: dict[str, int], place: Place, *, grow: bool, strict: bool
) -> tuple[set[int], int]:
    for name in labels:
        if not isinstance(name, str):
            raise place.error(f"expected label names, got {brief(name)}")
        if not name:
            raise place.error("a label name is empty")
        if name not in ids:
            if strict:
                raise place.error(
                    f"the label {brief(name)} is not one of the {len(ids)} names of the label file"
                )
            if grow:
                ids[name] = len(ids)
    known = {ids[name] for name in labels if name in ids}
    return known, len(set(labels)) - len(known)
