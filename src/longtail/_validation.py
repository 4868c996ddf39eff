"""The door: whatever a user passes becomes one canonical form here, or is refused with advice.

Features ``X`` become CSR float32 (sorted, no duplicates) or dense C-contiguous float32. Labels
``Y`` become CSR float32 with values in (0, 1]. Columns are int32, and so are row offsets, unless
there are more entries than int32 can count. The caller's objects are never changed; a matrix
already in canonical form is passed through without a copy. That a sparse matrix is sorted and free
of duplicates is looked at, whatever its flag ``has_canonical_format`` says.

One ``fit`` or ``predict_topk`` may call others with the same rows: members of an ensemble,
repetitions, trees. ``let_pass`` marks what has come through the door; it is not looked at again.
"""

from __future__ import annotations

import numbers
import weakref
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._csr import csr, narrow_offsets
from longtail._forms import Rows, one_dimension, rows_of
from longtail._native import core

__all__ = [
    "as_features",
    "as_k",
    "as_label_ids",
    "as_labels",
    "as_seed",
    "as_width",
    "check_same_rows",
    "let_pass",
    "n_instances",
]

_CHUNK = 1 << 22
_MOST_COLUMNS = np.iinfo(np.int32).max
_PADDED = 1000  # answers may be so wide, whatever the number of labels
_TEXT_FEATURES = "turn texts into features first (longtail.Tfidf)"
_TEXT_LABELS = "give label ids; names need a longtail.Tagger"


class _Marked:
    """Objects that were marked, for as long as somebody holds them.

    References have no callback, as those of a WeakValueDictionary have: Python raises the
    KeyboardInterrupt of Ctrl-C wherever it happens to be, and in a callback it would be lost.
    """

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[Any]] = {}
        self._room = 64

    def add(self, value: Any) -> None:
        if len(self._references) >= self._room:
            known = list(self._references.items())
            self._references = {key: held for key, held in known if held() is not None}
            self._room = max(64, 2 * len(self._references))
        self._references[id(value)] = weakref.ref(value)

    def __contains__(self, value: Any) -> bool:
        held = self._references.get(id(value))
        return held is not None and held() is value


_PASSED = _Marked()  # what ``let_pass`` has made
_PASSED_LABELS = _Marked()  # some of these are labels


def as_features(
    X: Any, *, n_features: int | None = None, name: str = "X", blocks: bool = False
) -> Any:
    """Return canonical features: CSR float32 for sparse input, dense float32 otherwise.

    Accepts any SciPy sparse matrix or array, NumPy arrays, nested lists of numbers, and data frames
    (those with sparse columns become CSR). Rows of two blocks (``longtail.features.beside``) become
    CSR as well, or stay what they are with ``blocks``. NaN, infinity (also what overflows float32),
    masked entries, numbers that are complex, more or fewer than two dimensions, and a width other
    than ``n_features`` are refused.

    >>> as_features([[0.5, 0], [1, 2]])
    array([[0.5, 0. ],
           [1. , 2. ]], dtype=float32)
    """
    if (X in _PASSED and (blocks or not isinstance(X, BlockRows))) or _is_ready(X):
        pass
    elif isinstance(X, BlockRows):
        X = BlockRows(as_features(X.sparse, name=name), as_features(X.dense, name=name))
        X = X if blocks else X.tocsr()
    else:
        X = _matrix(X, name, _TEXT_FEATURES)
        _check_finite(X.data if sp.issparse(X) else X.reshape(-1), name)
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(
            f"{name} has {X.shape[1]} features, but the model was fitted with {n_features}: "
            "pass it through the same vectoriser as the training data"
        )
    return X


def as_labels(
    Y: Any, *, n_rows: int | None = None, n_labels: int | None = None, name: str = "Y"
) -> sp.csr_matrix:
    """Return canonical labels: CSR float32, values in (0, 1], explicit zeros dropped.

    Accepts a table of values in [0, 1] (sparse, array, data frame, or nested lists with floats), a
    list of lists or sets of label ids (a label listed twice in a row counts once), or a
    one-dimensional integer array with one label id per row; ``longtail._forms`` has the rules.
    Duplicate entries of a sparse matrix are summed and refused if the sum is above 1.

    Refuses lists of equal length that hold only 0 and 1 as ambiguous: label ids, or an indicator
    matrix. With ``n_labels`` other than their length, and no label twice in a row, they are ids.

    >>> as_labels([[0, 2], [], [1]]).toarray()
    array([[1., 0., 1.],
           [0., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    if Y in _PASSED_LABELS:
        return _fitting_labels(Y, n_rows, n_labels, name)
    Y = one_dimension(Y)
    rows = rows_of(Y, name)
    if rows is not None:
        rows = rows.as_ids()
    if rows is not None and rows.form in ("values", "flags"):
        Y, rows = rows.table(name), None
    if rows is not None:
        Y = _labels_from_rows(rows, n_labels, name)
    elif isinstance(Y, np.ndarray) and Y.ndim == 1 and Y.dtype.kind in "iu":
        Y = _labels_from_rows(Rows("ids", Y.reshape(-1, 1).tolist()), n_labels, name)
    else:
        whole = getattr(Y, "dtype", None) is not None and Y.dtype.kind in "iu"
        Y = _matrix(Y, name, _TEXT_LABELS)
        if not sp.issparse(Y):
            _check_finite(Y.reshape(-1), name)
            if whole and Y.size and Y.max() > 1:
                raise ValueError(
                    f"{name} holds the value {Y.max():g}: a two-dimensional array is a table of "
                    f"values in [0, 1]; for label ids pass lists, {name}.tolist()"
                )
            Y = sp.csr_matrix(Y)
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
    return _fitting_labels(Y, n_rows, n_labels, name)


def _fitting_labels(
    Y: sp.csr_matrix, n_rows: int | None, n_labels: int | None, name: str
) -> sp.csr_matrix:
    """Return canonical labels if they have so many rows and labels."""
    if n_labels is not None and Y.shape[1] != n_labels:
        raise ValueError(f"{name} has {Y.shape[1]} labels, expected {n_labels}")
    if n_rows is not None:
        check_same_rows(n_rows, Y.shape[0], "X", name)
    return Y


def let_pass(matrix: Any, *, labels: bool = False, own: bool = False) -> Any:
    """Return canonical features or labels as an object that the door does not look at again.

    Parameters
    ----------
    matrix : csr_matrix, ndarray, BlockRows or other rows
        What one of the two has returned; rows of another kind (texts, tokens) come back as they
        are. The mark is on a new object around the same arrays, since the matrix may be the
        caller's own, who may change it later.
    labels : bool
        Whether ``as_labels`` has returned it; canonical labels are canonical features too.
    own : bool
        Whether a kernel has just made it, canonical, for whoever calls: the matrix itself is marked
        then.

    >>> X = as_features([[0.5, 0], [1, 2]])
    >>> passed = let_pass(X)
    >>> as_features(passed) is passed, passed is X
    (True, False)
    """
    if matrix in (_PASSED_LABELS if labels else _PASSED):
        return matrix
    if own:
        passed: Any = matrix
    elif isinstance(matrix, BlockRows):
        passed = BlockRows(let_pass(matrix.sparse), let_pass(matrix.dense))
    elif sp.issparse(matrix):
        passed = csr(matrix.indptr, matrix.indices, matrix.data, matrix.shape[1])
    elif isinstance(matrix, np.ndarray):
        passed = matrix.view()
    else:
        return matrix
    _PASSED.add(passed)
    if labels:
        _PASSED_LABELS.add(passed)
    return passed


def check_same_rows(n_x: int, n_y: int, x_name: str = "X", y_name: str = "Y") -> None:
    """Refuse two inputs that should describe the same rows but do not."""
    if n_x != n_y:
        raise ValueError(
            f"{x_name} has {n_x} rows but {y_name} has {n_y}: "
            "they must describe the same rows, in order"
        )


def as_k(k: Any, name: str = "k") -> int:
    """Return a positive whole number."""
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {k!r}")
    if k < 1:
        raise ValueError(f"{name} must be at least 1, got {k}")
    return int(k)


def as_label_ids(labels: Any, n_labels: int) -> np.ndarray:
    """Return label ids, checked and sorted, each of them once.

    >>> as_label_ids([2, 0, 2], 3)
    array([0, 2])
    """
    ids = np.unique(np.asarray(labels))
    if len(ids) and (ids.dtype.kind not in "iu" or ids[0] < 0 or ids[-1] >= n_labels):
        raise ValueError(f"labels must be ids from 0 to {n_labels - 1}, got {labels!r}")
    return ids.astype(np.int64)


def as_width(k: Any, n_labels: int, name: str = "k") -> int:
    """Return a number of answers per row: at most ``n_labels``, or 1,000 where there are fewer
    labels.

    Rows are padded to this width, so that a number far above would fill the memory with padding.
    """
    width, most = as_k(k, name), max(n_labels, _PADDED)
    if width > most:
        raise ValueError(f"{name} is {k}, but there are {n_labels} labels: ask for at most {most}")
    return width


def n_instances(n_rows: int, n_label_rows: Any) -> int:
    """Return how many of the rows are instances, where the last ``n_label_rows`` were made of label
    texts (``longtail.augment``) and are none.
    """
    if isinstance(n_label_rows, bool) or not isinstance(n_label_rows, numbers.Integral):
        raise TypeError(f"n_label_rows must be a whole number, got {n_label_rows!r}")
    n = int(n_label_rows)
    if not 0 <= n <= n_rows:
        raise ValueError(f"n_label_rows is {n}, but there are {n_rows} rows")
    return n_rows - n


def as_seed(random_state: Any) -> int:
    """Return a 64-bit seed from None (fresh entropy), an int, a NumPy Generator or a RandomState.

    One draw is taken from a generator, so two calls give two seeds.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        seed = int(random_state)
        if not 0 <= seed < 2**64:
            raise ValueError(f"random_state must lie in [0, 2^64), got {seed}")
        return seed
    raise TypeError(
        f"random_state must be None, an int, a Generator or a RandomState, got {random_state!r}"
    )


def _matrix(values: Any, name: str, text_hint: str) -> Any:
    """CSR or dense float32, not yet checked for NaN."""
    if hasattr(values, "dtypes") and hasattr(values, "sparse"):  # a frame of sparse columns
        values = values.sparse.to_coo()
    if not sp.issparse(values):
        return _dense(values, name, text_hint)
    if values.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions, got {values.ndim}: "
            f"use {name}.reshape(1, -1) for one row"
        )
    return _canonical_csr(values, name)


def _is_ready(X: Any) -> bool:
    """Return whether features are canonical CSR as they come, which the core sees at a glance."""
    return (
        type(X) is sp.csr_matrix
        and X.data.dtype == np.float32
        and X.indices.dtype == X.indptr.dtype == np.int32
        and X.data.ndim == X.indices.ndim == X.indptr.ndim == 1
        and X.shape[1] <= _MOST_COLUMNS
        and core.is_canonical(X.indptr, X.indices, X.data, *X.shape)
    )


def _canonical_csr(matrix: Any, name: str) -> sp.csr_matrix:
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got dtype {matrix.dtype}")
    n_cols = matrix.shape[1]
    if n_cols > _MOST_COLUMNS:
        raise ValueError(f"{name} has {n_cols} columns: at most {_MOST_COLUMNS} are supported")
    matrix = _checked(matrix, name)
    if matrix.format != "csr" or not _is_canonical(matrix):
        if matrix.dtype not in (np.float32, np.float64):  # whose sums do not wrap around
            matrix = matrix.astype(np.float32)
        original, matrix = matrix, matrix.tocsr()
        if not _is_canonical(matrix):
            matrix = matrix.copy() if matrix is original else matrix
            # The flags may claim what is not so, and SciPy would do nothing.
            matrix.has_canonical_format = matrix.has_sorted_indices = False
            matrix.sum_duplicates()
    with np.errstate(over="ignore"):  # what overflows float32 is refused as infinite afterwards
        data = matrix.data.astype(np.float32, copy=False)
    indices = matrix.indices.astype(np.int32, copy=False)
    indptr = narrow_offsets(matrix.indptr)
    arrays = (indptr is matrix.indptr, indices is matrix.indices, data is matrix.data)
    if isinstance(matrix, sp.csr_matrix) and all(arrays):
        return matrix
    return csr(indptr, indices, data, n_cols)


def _is_canonical(matrix: Any) -> bool:
    """Return whether the columns of every row of a CSR matrix ascend, by looking at them."""
    starts, columns = matrix.indptr, matrix.indices
    for begin in range(0, len(columns) - 1, _CHUNK):
        part = columns[begin : begin + _CHUNK + 1]
        falls = np.flatnonzero(part[1:] <= part[:-1]) + (begin + 1)
        if len(falls) and (starts[np.searchsorted(starts, falls)] != falls).any():
            return False
    return True


def _checked(matrix: Any, name: str) -> Any:
    """Return the matrix, if its index arrays are sound: SciPy and kernels trust them blindly."""
    if matrix.format == "coo":
        inside = [
            not len(index) or (index.min() >= 0 and index.max() < size)
            for index, size in zip((matrix.row, matrix.col), matrix.shape, strict=True)
        ]
        if not all(inside) or not len(matrix.row) == len(matrix.col) == len(matrix.data):
            raise ValueError(
                f"{name} is a damaged COO matrix: an index lies outside {matrix.shape}"
            )
    if matrix.format not in ("csr", "csc"):
        return matrix
    n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    offsets, indices, kind = matrix.indptr, matrix.indices, matrix.format.upper()
    nnz = int(offsets[-1]) if len(offsets) == n_major + 1 else -1
    if (
        not 0 <= nnz <= min(len(indices), len(matrix.data))
        or offsets[0] != 0
        or (offsets[1:] < offsets[:-1]).any()
    ):
        raise ValueError(
            f"{name} is a damaged {kind} matrix: its offsets do not ascend from 0 "
            "to the number of entries"
        )
    if nnz and (indices[:nnz].min() < 0 or indices[:nnz].max() >= n_minor):
        raise ValueError(
            f"{name} is a damaged {kind} matrix: an index lies outside [0, {n_minor}) "
            f"(found {indices[:nnz].min()} to {indices[:nnz].max()})"
        )
    if nnz < max(len(indices), len(matrix.data)):  # room for more entries, as SciPy allows
        trimmed = type(matrix)(matrix.shape, dtype=matrix.dtype)
        trimmed.indptr, trimmed.indices, trimmed.data = offsets, indices[:nnz], matrix.data[:nnz]
        return trimmed
    return matrix


def _dense(values: Any, name: str, text_hint: str) -> np.ndarray:
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{name} holds masked entries: replace or drop them first")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read as a table of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        try:
            if array.dtype.kind != "O":
                raise TypeError
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must hold numbers, got {array.dtype}: {text_hint}") from None
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions, got {array.ndim}: use reshape(1, -1) for one row"
        )
    if array.shape[1] > _MOST_COLUMNS:
        raise ValueError(f"{name} has {array.shape[1]} columns: at most {_MOST_COLUMNS}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def _check_finite(values: np.ndarray, name: str) -> None:
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]
        finite = np.isfinite(chunk)
        if not finite.all():
            bad = chunk[~finite][0]
            what = "NaN" if np.isnan(bad) else "a value that is infinite in float32"
            raise ValueError(f"{name} holds {what}: replace or drop such entries first")


def _labels_from_rows(given: Rows, n_labels: int | None, name: str) -> sp.csr_matrix:
    if given.form == "names":
        i = next(i for i, row in enumerate(given.rows) if row)
        raise TypeError(f"{name}[{i}] holds {given.rows[i][0]!r}, not a label id: {_TEXT_LABELS}")
    lengths: list[int] = []
    flat: list[int] = []
    for row in given.rows:
        unique = sorted({int(label) for label in row})
        flat.extend(unique)
        lengths.append(len(unique))
    _refuse_indicators(given, flat, n_labels, name)
    if flat and min(flat) < 0:
        raise ValueError(f"{name} holds the negative label id {min(flat)}: ids count from 0")
    width = max(flat, default=-1) + 1 if n_labels is None else n_labels
    if flat and max(flat) >= width:
        raise ValueError(
            f"{name} holds the label id {max(flat)}, "
            f"but there are {width} labels (0 to {width - 1})"
        )
    if width > _MOST_COLUMNS:
        raise ValueError(f"{name} holds the label id {max(flat)}: at most {_MOST_COLUMNS} labels")
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return csr(indptr, np.asarray(flat, np.int32), np.ones(len(flat), np.float32), width)


def _refuse_indicators(given: Rows, flat: list[int], n_labels: int | None, name: str) -> None:
    """Raise ValueError for lists that could be rows of an indicator matrix or label ids."""
    sizes = {len(row) for row in given.rows}
    if given.sets or len(sizes) != 1 or min(sizes) < 2 or not {0, 1}.issuperset(flat):
        return
    size = min(sizes)
    if n_labels is not None and n_labels != size and len(flat) == size * len(given.rows):
        return
    raise ValueError(
        f"{name} is ambiguous: it looks like an indicator matrix (every row lists {size} times 0 "
        f"or 1), but could be lists of label ids. Pass np.asarray({name}) for an indicator matrix, "
        f"or sets, [set(row) for row in {name}], for ids"
    )
