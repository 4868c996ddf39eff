"""SciPy ``.npz`` pairs: features in one file, labels in another, row by row.

    X_train.npz, Y_train.npz       what ``scipy.sparse.save_npz`` writes: CSR, CSC, COO, BSR or DIA
    X_test.npz,  Y_test.npz        (and X_dev…); X may also be a dense ``.npy``
    trn_X_Xf.npz, trn_X_Y.npz      the names used by pyxclib: the same files
    tst_X_Xf.npz, tst_X_Y.npz

    labels.txt or labels.jsonl     names, and texts, of the labels: optional
    features.txt                   names of the features, one per line: optional

A split may lack X (labels only). Pickled objects are never loaded. Refuses files that are not what
they claim, indices out of range, values that are not finite, labels outside (0, 1], and X and Y
with different numbers of rows.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._lines import FilePath, open_for_writing, read_lines, write_lines
from longtail._validation import as_features, as_labels
from longtail.data.dataset import Dataset, Split
from longtail.data.label_file import find_label_file, write_label_file
from longtail.data.layout import assemble, find_file, find_splits, make_folder
from longtail.exceptions import DataFormatError

__all__ = [
    "read_matrix",
    "read_npz_folder",
    "read_npz_pair",
    "write_matrix",
    "write_npz_folder",
    "write_npz_pair",
]

FEATURES = ("X_{}.npz", "X_{}.npy", "{}_X_Xf.npz")
LABELS = ("Y_{}.npz", "{}_X_Y.npz")


def read_matrix(path: FilePath) -> Any:
    """Return the matrix of a ``.npz`` (sparse) or ``.npy`` (dense) file, its indices checked."""
    dense = os.fspath(path).endswith(".npy")
    with open(path, "rb") as file:
        try:
            if dense:
                return np.load(file, allow_pickle=False)
            matrix = sp.load_npz(file)
            if hasattr(matrix, "check_format"):
                matrix.check_format(full_check=True)  # SciPy's own code trusts indices blindly
            return matrix
        except Exception as error:  # damaged bytes raise whatever NumPy's parsers happen to meet
            kind = "dense .npy" if dense else "SciPy sparse .npz"
            raise DataFormatError(f"expected a {kind} matrix: {error!s:.200}", path=path) from None


def read_npz_pair(x_path: FilePath | None, y_path: FilePath) -> tuple[Any, sp.csr_matrix]:
    """Return ``(X, Y)`` in canonical form; ``X`` is None without ``x_path``.

    Parameters
    ----------
    x_path : str or path
        File of the features; None for none.
    y_path : str or path
        File of the labels.
    """
    Y = _canonical(as_labels, y_path)
    X = None if x_path is None else _canonical(as_features, x_path)
    if X is not None and X.shape[0] != Y.shape[0]:
        raise DataFormatError(
            f"expected {X.shape[0]} rows, as in {os.fspath(x_path)}, got {Y.shape[0]}",  # type: ignore[arg-type]
            path=y_path,
        )
    return X, Y


def _canonical(convert: Any, path: FilePath) -> Any:
    matrix = read_matrix(path)
    try:
        return convert(matrix, name="the matrix")
    except (TypeError, ValueError, MemoryError) as error:
        raise DataFormatError(str(error), path=path) from None


def write_matrix(path: FilePath, matrix: Any) -> None:
    """Write a sparse matrix as ``.npz``, or a dense one as ``.npy``."""
    with open_for_writing(path) as file:
        if sp.issparse(matrix):
            sp.save_npz(file, matrix)
        else:
            np.save(file, np.asarray(matrix), allow_pickle=False)


def write_npz_pair(x_path: FilePath, y_path: FilePath, X: Any, Y: Any) -> None:
    """Write ``X`` and ``Y`` in canonical form.

    Parameters
    ----------
    x_path : str or path
        File of the features.
    y_path : str or path
        File of the labels.
    X : matrix of shape (n, d)
        Rows of features.
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    """
    split = Split(X=X, Y=Y)
    write_matrix(x_path, split.X)
    write_matrix(y_path, split.Y)


def read_npz_folder(folder: FilePath) -> Dataset:
    """Read every split, and the names where they are given.

    Parameters
    ----------
    folder : str or path
        Where the files are.
    """
    features, labels = find_splits(folder, *FEATURES), find_splits(folder, *LABELS)
    splits = {}
    for split in {**features, **labels}:
        if split not in labels:
            raise DataFormatError(
                f"expected Y_{split}.npz next to {features[split].name}", path=folder
            )
        X, Y = read_npz_pair(features.get(split), labels[split])
        splits[split] = Split(X=X, Y=Y)
    label_file = find_label_file(folder)
    return assemble(
        folder,
        splits,
        label_names=None if label_file is None else label_file.names,
        label_texts=None if label_file is None else label_file.texts,
        feature_names=read_feature_names(folder),
    )


def read_feature_names(folder: FilePath) -> list[str] | None:
    """Return the lines of ``features.txt``; None where there is no such file."""
    path = find_file(folder, "features.txt")
    return None if path is None else [line for _, line in read_lines(path)]


def write_npz_folder(folder: FilePath, dataset: Dataset) -> None:
    """Write every split, and the names where the data set has them.

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
            raise ValueError(f"the {name} split has no labels: this layout needs them")
        if split.X is not None:
            suffix = ".npz" if sp.issparse(split.X) else ".npy"
            write_matrix(target / f"X_{name}{suffix}", split.X)
        write_matrix(target / f"Y_{name}.npz", split.Y)
    write_names(target, dataset)


def write_names(target: Path, dataset: Dataset) -> None:
    """Write ``labels.jsonl`` and ``features.txt``, where the data set has the names."""
    if dataset.label_names is not None:
        write_label_file(target / "labels.jsonl", dataset.label_names, dataset.label_texts)
    if dataset.feature_names is not None:
        write_lines(target / "features.txt", dataset.feature_names)
