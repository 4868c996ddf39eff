"""Folders of data files: how splits are named, found, and put together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longtail.data.dataset import Dataset, Split
from longtail.data.filter_pairs import read_filter_pairs, write_filter_pairs
from longtail.data.lines import FilePath
from longtail.exceptions import DataFormatError

__all__ = [
    "SPLIT_NAMES",
    "assemble",
    "find_file",
    "find_filters",
    "find_splits",
    "make_folder",
    "write_filters",
]

# The first name of each is the one that writers use where a layout does not say otherwise.
SPLIT_NAMES = {
    "train": ("train", "trn"),
    "dev": ("dev", "valid", "validation", "val"),
    "test": ("test", "tst"),
}
_FILTERS = {
    "train_filter": ("trn_filter_labels.txt", "filter_labels_train.txt"),
    "test_filter": ("tst_filter_labels.txt", "filter_labels_test.txt"),
}


def find_file(folder: FilePath, *names: str) -> Path | None:
    """The first of ``names`` that is a file in the folder, plain before ``.gz``."""
    for name in names:
        for candidate in (Path(folder, name), Path(folder, name + ".gz")):
            if candidate.is_file():
                return candidate
    return None


def find_splits(folder: FilePath, *patterns: str) -> dict[str, Path]:
    """Files for the splits: each pattern has a ``{}`` for the split's name (``{}.jsonl``).

    Train is also called trn, test also tst, dev also valid, validation or val.
    """
    found = {}
    for split, names in SPLIT_NAMES.items():
        candidates = [pattern.format(name) for pattern in patterns for name in names]
        path = find_file(folder, *candidates)
        if path is not None:
            found[split] = path
    return found


def find_filters(folder: FilePath) -> dict[str, np.ndarray]:
    """The filter pairs of the folder by the field of ``Dataset`` they belong to."""
    paths = {field: find_file(folder, *names) for field, names in _FILTERS.items()}
    return {field: read_filter_pairs(path) for field, path in paths.items() if path is not None}


def write_filters(folder: FilePath, dataset: Dataset) -> None:
    """Writes the filter pairs that the data set has."""
    for field, (name, _) in _FILTERS.items():
        pairs = getattr(dataset, field)
        if pairs is not None:
            write_filter_pairs(Path(folder, name), pairs)


def assemble(folder: FilePath, splits: Mapping[str, Split], **parts: Any) -> Dataset:
    """A ``Dataset`` named after its folder; parts that do not fit together are a format error."""
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
    """The folder to write into, made where it is missing; its other files are left alone."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path
