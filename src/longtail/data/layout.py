"""Folders of data files: how splits are named, found, and put together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longtail._lines import FilePath
from longtail.data.dataset import Dataset, Split
from longtail.data.filter_pairs import read_filter_pairs, write_filter_pairs
from longtail.exceptions import DataFormatError

__all__ = [
    "SHORT_NAMES",
    "SPLIT_NAMES",
    "assemble",
    "find_file",
    "find_filters",
    "find_splits",
    "make_folder",
    "write_filters",
]

SPLIT_NAMES = {
    "train": ("train", "trn"),
    "dev": ("dev", "valid", "validation", "val"),
    "test": ("test", "tst"),
}
SHORT_NAMES = {"train": "trn", "dev": "val", "test": "tst"}
_FILTERS = {
    "train_filter": ("trn_filter_labels.txt", "filter_labels_train.txt"),
    "test_filter": ("tst_filter_labels.txt", "filter_labels_test.txt"),
}


def find_file(folder: FilePath, *names: str) -> Path | None:
    """Return the first of ``names`` that is a file in the folder, plain before ``.gz``."""
    for name in names:
        for candidate in (Path(folder, name), Path(folder, name + ".gz")):
            if candidate.is_file():
                return candidate
    return None


def find_splits(folder: FilePath, *patterns: str) -> dict[str, Path]:
    """Return files for the splits: each pattern has a ``{}`` for the split's name (``{}.jsonl``).

    Train is also called trn, test also tst, dev also valid, validation or val.
    """
    found = {}
    for split, names in SPLIT_NAMES.items():
        candidates = [pattern.format(name) for pattern in patterns for name in names]
        path = find_file(folder, *candidates)
        if path is not None:
            found[split] = path
    return found


def find_filters(folder: FilePath, splits: Mapping[str, Split]) -> dict[str, np.ndarray]:
    """Return the filter pairs of the folder, by the field of ``Dataset`` they belong to.

    Rows and labels are checked against the splits, so that an error names the line; the pairs of a
    split that is not there can only be checked for their labels.
    """
    n_labels = next((split.Y.shape[1] for split in splits.values() if split.Y is not None), None)
    found = {}
    for field, names in _FILTERS.items():
        path = find_file(folder, *names)
        if path is not None:
            split = splits.get(field.removesuffix("_filter"))
            n_rows = None if split is None else len(split)
            found[field] = read_filter_pairs(path, n_rows=n_rows, n_labels=n_labels)
    return found


def write_filters(folder: FilePath, dataset: Dataset) -> None:
    """Write the filter pairs that the data set has."""
    for field, (name, _) in _FILTERS.items():
        pairs = getattr(dataset, field)
        if pairs is not None:
            write_filter_pairs(Path(folder, name), pairs)


def assemble(folder: FilePath, splits: Mapping[str, Split], **parts: Any) -> Dataset:
    """Return a ``Dataset`` named after its folder; parts that do not fit together are a format
    error.
    """
    try:
        return Dataset(
            train=splits.get("train", Split()),
            test=splits.get("test", Split()),
            dev=splits.get("dev"),
            name=os.path.basename(os.path.abspath(folder)),
            **parts,
        )
    except (TypeError, ValueError) as error:
        raise DataFormatError(str(error), path=folder) from None


def make_folder(folder: FilePath) -> Path:
    """Return the folder to write into, made where it is missing; its other files are left alone."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path
