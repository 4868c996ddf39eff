"""The label-feature layout of the Extreme Classification Repository: labels have texts too.

    trn.json[.gz], tst.json[.gz]   one JSON object per line:
        uid         the record's own name (ignored)
        title       string
        content     string, may be missing
        target_ind  list of label ids, from 0: the line of lbl.json, counted from 0
        target_rel  list of their relevances in (0, 1], as long as target_ind; missing means 1
    lbl.json[.gz]                  one JSON object per line, in label-id order:
        uid         the label's name, unique
        title, content   its text

    filter_labels_train.txt, filter_labels_test.txt   pairs ``row label``, optional
                              (also called trn_filter_labels.txt, tst_filter_labels.txt)

A text is the title and the content, joined by a blank where both are there. Where ``lbl.json`` is
missing, as in the older sets without label texts, names come from ``Yf.txt`` or ``labels.txt``
(one per line), or else the largest id in use sets the number of labels.

Refuses ids out of range or not whole, relevances outside (0, 1], and lists of different length. An
id listed twice in a record counts once, with the larger relevance.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._lines import FilePath
from longtail.data.dataset import Dataset, Split
from longtail.data.json_lines import read_json_lines, write_json_lines
from longtail.data.label_file import read_label_file
from longtail.data.layout import (
    SHORT_NAMES,
    assemble,
    find_file,
    find_filters,
    find_splits,
    make_folder,
    write_filters,
)
from longtail.data.place import Place, brief

__all__ = ["read_label_feature_folder", "read_label_records", "write_label_feature_folder"]

PATTERNS = ("{}.json",)


def read_label_records(path: FilePath, n_labels: int | None = None) -> Split:
    """Read ``trn.json`` or ``tst.json``; without ``n_labels``, Y is as wide as the largest id."""
    texts: list[str] = []
    flat, values, ends = array("i"), array("f"), array("q", [0])
    widest = 0
    for line, record in read_json_lines(path):
        place = Place(os.fspath(path), line)
        targets = _targets(record, n_labels, place)
        texts.append(_text(record, place))
        flat.extend(targets)
        values.extend(targets.values())
        ends.append(len(flat))
        widest = max(widest, max(targets, default=-1) + 1)
    Y = sp.csr_matrix(
        (np.array(values, np.float32), np.array(flat, np.int32), np.array(ends, np.int64)),
        shape=(len(texts), widest if n_labels is None else n_labels),
    )
    Y.sort_indices()
    return Split(Y=Y, texts=texts)


def _targets(record: dict[str, Any], n_labels: int | None, place: Place) -> dict[int, float]:
    ids = record.get("target_ind")
    if not isinstance(ids, list):
        raise place.error(f"expected target_ind to be a list of label ids, got {brief(ids)}")
    relevances = record.get("target_rel")
    if relevances is None:
        relevances = [1.0] * len(ids)
    elif not isinstance(relevances, list) or len(relevances) != len(ids):
        raise place.error(f"expected target_rel to be a list of {len(ids)} numbers, as target_ind")
    bound = np.iinfo(np.int32).max if n_labels is None else n_labels
    targets: dict[int, float] = {}
    for label, relevance in zip(ids, relevances, strict=True):
        if type(label) is not int or not 0 <= label < bound:
            raise place.error(
                f"expected label ids from 0 to {bound - 1} in target_ind, got {brief(label)}"
            )
        if type(relevance) not in (int, float) or not 0 < relevance <= 1:
            raise place.error(
                f"expected numbers above 0 and up to 1 in target_rel, got {brief(relevance)}"
            )
        targets[label] = max(relevance, targets.get(label, 0.0))
    return targets


def _text(record: dict[str, Any], place: Place) -> str:
    parts = [record.get("title"), record.get("content")]
    for part in parts:
        if part is not None and not isinstance(part, str):
            raise place.error(f"expected title and content to be strings, got {brief(part)}")
    return " ".join(part for part in parts if part)


def _label_rows(path: FilePath) -> tuple[list[str], list[str]]:
    names: dict[str, int] = {}
    texts = []
    for line, record in read_json_lines(path):
        place = Place(os.fspath(path), line)
        uid = record.get("uid")
        name = str(uid) if type(uid) is int else uid
        if not isinstance(name, str) or not name:
            raise place.error(f"expected uid to be the label's name, got {brief(uid)}")
        first = names.setdefault(name, line)
        if first != line:
            raise place.error(f"the uid {brief(name)} occurs twice, first on line {first}")
        texts.append(_text(record, place))
    return list(names), texts


def read_label_feature_folder(folder: FilePath) -> Dataset:
    """Read every split, the labels and the filter pairs; ``X`` stays None.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    """
    names = texts = None
    label_path = find_file(folder, "lbl.json")
    name_path = find_file(folder, "Yf.txt", "labels.txt")
    if label_path is not None:
        names, texts = _label_rows(label_path)
    elif name_path is not None:
        names = read_label_file(name_path).names
    n_labels = None if names is None else len(names)
    files = find_splits(folder, *PATTERNS)
    splits = {split: read_label_records(path, n_labels) for split, path in files.items()}
    if n_labels is None:
        width = max((split.Y.shape[1] for split in splits.values()), default=0)
        for split in splits.values():
            split.Y.resize(split.Y.shape[0], width)
    return assemble(
        folder, splits, label_names=names, label_texts=texts, **find_filters(folder, splits)
    )


def write_label_feature_folder(folder: FilePath, dataset: Dataset, *, gz: bool = True) -> None:
    """Write every split, ``lbl.json`` and the filter pairs; texts go to ``title``.

    Records are named by their row number; labels by ``label_names``, or by their id without names.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    dataset : Dataset
        What to write.
    gz : bool, default=True
        Whether to pack the files.
    """
    target = make_folder(folder)
    suffix = ".json.gz" if gz else ".json"
    for name, split in dataset.splits.items():
        if split.texts is None or split.Y is None:
            raise ValueError(f"the {name} split has no texts or no labels: this format needs both")
        write_json_lines(target / f"{SHORT_NAMES[name]}{suffix}", _records(split))
    names = dataset.label_names or [str(i) for i in range(dataset.n_labels)]
    texts = dataset.label_texts or dataset.label_names or [""] * len(names)
    rows = zip(names, texts, strict=True)
    write_json_lines(
        target / f"lbl{suffix}", ({"uid": u, "title": t, "content": ""} for u, t in rows)
    )
    write_filters(target, dataset)


def _records(split: Split) -> Iterator[dict[str, Any]]:
    Y = split.Y
    for row, text in enumerate(split.texts or []):
        start, end = Y.indptr[row], Y.indptr[row + 1]
        yield {
            "uid": str(row),
            "title": text,
            "content": "",
            "target_ind": Y.indices[start:end].tolist(),
            "target_rel": Y.data[start:end].tolist(),
        }
