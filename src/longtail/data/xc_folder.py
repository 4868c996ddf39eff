"""Folders in the extreme-classification text format, and folders of label matrices.

    train.txt, test.txt (dev.txt)      ``N D L``, then ``l1,l2 f:v f:v`` (see ``xc_format``)
    labels.txt or labels.jsonl         names, and texts, of the labels: optional
    features.txt                       names of the features, one per line: optional

    trn_X_Y.txt, tst_X_Y.txt           ``N L``, then ``label:1 label:1``
    trn_X_Xf.txt, tst_X_Xf.txt         ``N D``, then ``f:v f:v``: optional

    trn_filter_labels.txt, tst_filter_labels.txt    pairs ``row label``: optional, in both layouts
                                       (also filter_labels_train.txt, filter_labels_test.txt)
    inv_prop.txt                       published inverse propensities, one per line: optional, both

Every file may be gzip. Splits may also be named with a prefix (``eurlex_train.txt``), where one
prefix only is in the folder. Refuses splits of different D or L, and name files of another length.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from longtail._lines import FilePath, read_lines, write_lines
from longtail.data.dataset import Dataset, Split
from longtail.data.label_file import find_label_file
from longtail.data.layout import (
    SHORT_NAMES,
    SPLIT_NAMES,
    assemble,
    find_file,
    find_filters,
    find_splits,
    make_folder,
    write_filters,
)
from longtail.data.npz_pairs import read_feature_names, write_names
from longtail.data.place import brief
from longtail.data.xc_format import (
    read_feature_matrix,
    read_label_matrix,
    read_xc,
    write_feature_matrix,
    write_label_matrix,
    write_xc,
)
from longtail.exceptions import DataFormatError

__all__ = [
    "read_label_matrix_folder",
    "read_xc_folder",
    "write_label_matrix_folder",
    "write_xc_folder",
]

LABELS, FEATURES = "{}_X_Y.txt", "{}_X_Xf.txt"


def xc_files(folder: FilePath) -> dict[str, Path]:
    """Return the splits of the text format: ``train.txt``, or ``<prefix>_train.txt`` for one
    prefix.
    """
    found = find_splits(folder, "{}.txt")
    if found:
        return found
    by_prefix: dict[str, dict[str, Path]] = {}
    for path in sorted(Path(folder).iterdir()):
        prefix, _, name = path.name.removesuffix(".gz").removesuffix(".txt").rpartition("_")
        for split, names in SPLIT_NAMES.items():
            is_split = name in names and prefix not in ("", "filter_labels")
            if is_split and ".txt" in path.suffixes and path.is_file():
                by_prefix.setdefault(prefix, {}).setdefault(split, path)
    return next(iter(by_prefix.values())) if len(by_prefix) == 1 else {}


def read_xc_folder(folder: FilePath) -> Dataset:
    """Read every split in the text format, and the names where they are given.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    """
    splits = {}
    for split, path in xc_files(folder).items():
        X, Y = read_xc(path)
        splits[split] = Split(X=X, Y=Y)
    return _with_names(folder, splits)


def read_label_matrix_folder(folder: FilePath) -> Dataset:
    """Read every split of labels; ``X`` stays None where there are no features.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    """
    labels, features = find_splits(folder, LABELS), find_splits(folder, FEATURES)
    splits = {}
    for split, path in labels.items():
        Y = read_label_matrix(path)
        X = read_feature_matrix(features[split]) if split in features else None
        if X is not None and X.shape[0] != Y.shape[0]:
            raise DataFormatError(
                f"expected {Y.shape[0]} rows, as in {path.name}, got {X.shape[0]}",
                path=features[split],
                line=1,
            )
        splits[split] = Split(X=X, Y=Y)
    return _with_names(folder, splits)


def _with_names(folder: FilePath, splits: dict[str, Split]) -> Dataset:
    labels = find_label_file(folder)
    return assemble(
        folder,
        splits,
        label_names=None if labels is None else labels.names,
        label_texts=None if labels is None else labels.texts,
        feature_names=read_feature_names(folder),
        inverse_propensity=_inverse_propensities(folder),
        **find_filters(folder, splits),
    )


def _inverse_propensities(folder: FilePath) -> np.ndarray | None:
    path = find_file(folder, "inv_prop.txt")
    if path is None:
        return None
    weights = []
    for line, text in read_lines(path):
        try:
            weight = float(text)
        except ValueError:
            weight = math.nan
        if not 1 <= weight < math.inf:
            raise DataFormatError(
                f"expected an inverse propensity (a number from 1 up), got {brief(text)}",
                path=path,
                line=line,
            )
        weights.append(weight)
    return np.array(weights)


def write_xc_folder(folder: FilePath, dataset: Dataset) -> None:
    """Write every split in the text format, with names and filter pairs where there are any.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    dataset : Dataset
        What to write.
    """
    target = make_folder(folder)
    for name, split in dataset.splits.items():
        if split.X is None or split.Y is None:
            raise ValueError(f"the {name} split has no features or no labels: the format has both")
        write_xc(target / f"{name}.txt", split.X, split.Y)
    _write_rest(target, dataset)


def write_label_matrix_folder(folder: FilePath, dataset: Dataset) -> None:
    """Write the matrices of every split, with names and filter pairs where there are any.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    dataset : Dataset
        What to write.
    """
    target = make_folder(folder)
    for name, split in dataset.splits.items():
        if split.Y is None:
            raise ValueError(f"the {name} split has no labels")
        short = SHORT_NAMES[name]
        write_label_matrix(target / LABELS.format(short), split.Y)
        if split.X is not None:
            write_feature_matrix(target / FEATURES.format(short), split.X)
    _write_rest(target, dataset)


def _write_rest(target: Path, dataset: Dataset) -> None:
    write_names(target, dataset)
    write_filters(target, dataset)
    if dataset.inverse_propensity is not None:
        write_lines(target / "inv_prop.txt", map(repr, dataset.inverse_propensity.tolist()))
