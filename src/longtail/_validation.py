"""The door: whatever a user passes becomes one canonical form here, once, or is refused.

Features ``X`` become CSR float32 (sorted, no duplicates) or dense C-contiguous float32. Labels
``Y`` become CSR float32 with values in (0, 1]. The caller's objects are never changed; a matrix
already in canonical form is passed through without a copy.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["as_features", "as_k", "as_labels", "as_seed", "check_same_rows"]

_CHUNK = 1 << 22


def as_features(X: Any, *, n_features: int | None = None, name: str = "X") -> Any:
    """Canonical features: CSR float32 for sparse input, dense float32 otherwise.

    NaN, infinite values and a wrong width are refused. Accepts any SciPy sparse matrix or array,
    NumPy arrays, nested lists of numbers, and data frames (their values).
    """
    if sp.issparse(X):
        if X.ndim != 2:
            raise ValueError(
                f"{name} must have two dimensions, got {X.ndim}: "
                f"use {name}.reshape(1, -1) for one row"
            )
        X = _canonical_csr(X, name)
        values = X.data
    else:
        X = _dense(X, name)
        values = X.reshape(-1)
    _check_finite(values, name)
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(
            f"{name} has {X.shape[1]} features, but the model was fitted with {n_features}: "
            "pass it through the same vectoriser as the training data"
        )
    return X


def as_labels(
    Y: Any, *, n_rows: int | None = None, n_labels: int | None = None, name: str = "Y"
) -> sp.csr_matrix:
    """Canonical labels: CSR float32, values in (0, 1], explicit zeros dropped.

    Accepts an indicator matrix (sparse, dense array or data frame; values in [0, 1]), a list of
    lists of label ids (a label listed twice in a row counts once), or a one-dimensional integer
    array with one label id per row. Duplicate entries of a sparse matrix are summed and refused if
    the sum is above 1.

    >>> as_labels([[0, 2], [], [1]]).toarray()
    array([[1., 0., 1.],
           [0., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    if sp.issparse(Y):
        if Y.ndim != 2:
            raise ValueError(f"{name} must have two dimensions, got {Y.ndim}")
        Y = _canonical_csr(Y, name)
    elif _is_label_lists(Y):
        Y = _labels_from_lists(Y, n_labels, name)
    elif isinstance(Y, np.ndarray) and Y.ndim == 1 and np.issubdtype(Y.dtype, np.integer):
        Y = _labels_from_lists(Y.reshape(-1, 1), n_labels, name)
    else:
        dense = _dense(Y, name)
        _check_finite(dense.reshape(-1), name)
        Y = sp.csr_matrix(dense)
    _check_finite(Y.data, name)
    if Y.nnz and Y.data.min() <= 0:
        if Y.data.min() < 0:
            raise ValueError(
                f"{name} holds a negative value ({Y.data.min():g}): label values lie in [0, 1]"
            )
        Y = Y.copy()
        Y.eliminate_zeros()
    if Y.nnz and Y.data.max() > 1:
        raise ValueError(
            f"{name} holds the value {Y.data.max():g}: label values lie in [0, 1] "
            "(repeated entries of a sparse matrix are summed; pass each label once)"
        )
    if n_labels is not None and Y.shape[1] != n_labels:
        raise ValueError(f"{name} has {Y.shape[1]} labels, expected {n_labels}")
    if n_rows is not None:
        check_same_rows(n_rows, Y.shape[0], "X", name)
    return Y


def check_same_rows(n_x: int, n_y: int, x_name: str = "X", y_name: str = "Y") -> None:
    """Refuses two inputs that should describe the same rows but do not."""
    if n_x != n_y:
        raise ValueError(
            f"{x_name} has {n_x} rows but {y_name} has {n_y}: "
            "they must describe the same rows, in order"
        )


def as_k(k: Any, name: str = "k") -> int:
    """A positive whole number."""
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {k!r}")
    if k < 1:
        raise ValueError(f"{name} must be at least 1, got {k}")
    return int(k)


def as_seed(random_state: Any) -> int:
    """A 64-bit seed from None (fresh entropy), an int, a Generator or a RandomState (one draw)."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, got {random_state}")
        return int(random_state) & (2**64 - 1)
    raise TypeError(
        f"random_state must be None, an int, a Generator or a RandomState, got {random_state!r}"
    )


def _canonical_csr(matrix: Any, name: str) -> sp.csr_matrix:
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got dtype {matrix.dtype}")
    if matrix.format != "csr":
        matrix = matrix.tocsr()
    n_rows, n_cols = matrix.shape
    if n_cols > np.iinfo(np.int32).max:
        raise ValueError(
            f"{name} has {n_cols} columns: at most {np.iinfo(np.int32).max} are supported"
        )
    indptr, indices = matrix.indptr, matrix.indices
    if (
        len(indptr) != n_rows + 1
        or indptr[0] != 0
        or np.any(np.diff(indptr) < 0)
        or indptr[-1] > len(indices)
    ):
        raise ValueError(
            f"{name} is a damaged CSR matrix: "
            "its row offsets do not ascend from 0 to the number of entries"
        )
    if len(indices) and (indices.min() < 0 or indices.max() >= n_cols):
        raise ValueError(
            f"{name} is a damaged CSR matrix: a column index lies outside [0, {n_cols}) "
            f"(found {indices.min()} to {indices.max()})"
        )
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    with np.errstate(over="ignore"):  # what overflows float32 is refused as infinite afterwards
        data = matrix.data.astype(np.float32, copy=False)
    if isinstance(matrix, sp.csr_matrix) and data is matrix.data:
        return matrix
    out = sp.csr_matrix(matrix.shape, dtype=np.float32)
    out.indptr, out.indices, out.data = matrix.indptr, matrix.indices, data
    out.has_canonical_format = True
    return out


def _dense(values: Any, name: str) -> np.ndarray:
    if hasattr(values, "sparse") and hasattr(
        values, "to_numpy"
    ):  # a pandas frame with sparse columns
        values = values.to_numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read as a table of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name} must hold numbers, got {array.dtype}: "
                "turn texts into features first (longtail.Tfidf)"
            ) from None
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions, got {array.ndim}: "
            "use reshape(1, -1) for a single row"
        )
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def _check_finite(values: np.ndarray, name: str) -> None:
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]
        if not np.isfinite(chunk).all():
            bad = chunk[~np.isfinite(chunk)][0]
            what = "NaN" if np.isnan(bad) else "a value that is infinite in float32"
            raise ValueError(f"{name} holds {what}: replace or drop such entries before fitting")


def _is_label_lists(Y: Any) -> bool:
    """A sequence of collections (not of strings): one list of label ids per row."""
    if isinstance(Y, np.ndarray):
        return Y.dtype == object and Y.ndim == 1
    if hasattr(Y, "dtypes") or hasattr(Y, "__array_interface__"):
        return False
    if hasattr(Y, "to_numpy") and getattr(Y, "ndim", 0) == 1:  # a pandas series of lists
        return True
    return isinstance(Y, Sequence) and not isinstance(Y, (str, bytes))


def _labels_from_lists(rows: Iterable[Any], n_labels: int | None, name: str) -> sp.csr_matrix:
    lengths: list[int] = []
    flat: list[int] = []
    for i, row in enumerate(rows):
        if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
            if isinstance(row, numbers.Integral):
                raise TypeError(
                    f"{name}[{i}] is the number {row}: give one list of label ids per row, "
                    "or a one-dimensional integer array for one label per row"
                )
            raise TypeError(
                f"{name}[{i}] must be a list of label ids, got {row!r}: "
                "names need a longtail.Tagger"
            )
        try:
            ids = {int(label) for label in row if label == int(label) or _refuse(label, i, name)}
        except (TypeError, ValueError):
            raise TypeError(
                f"{name}[{i}] must hold label ids (whole numbers), "
                f"got {list(row)[:3]!r}: names need a longtail.Tagger"
            ) from None
        flat.extend(sorted(ids))
        lengths.append(len(ids))
    indices = np.asarray(flat, dtype=np.int64)
    if len(indices) and indices.min() < 0:
        raise ValueError(f"{name} holds the negative label id {indices.min()}: ids count from 0")
    width = int(indices.max()) + 1 if n_labels is None and len(indices) else (n_labels or 0)
    if len(indices) and indices.max() >= width:
        raise ValueError(
            f"{name} holds the label id {indices.max()}, "
            f"but there are {width} labels (0 to {width - 1})"
        )
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return sp.csr_matrix(
        (np.ones(len(indices), np.float32), indices, indptr), shape=(len(lengths), width)
    )


def _refuse(label: Any, row: int, name: str) -> bool:
    raise TypeError(f"{name}[{row}] holds {label!r}")
