"""Rows on disk: matrices that are read page by page instead of being held in memory.

``save_matrix`` writes features (or labels) to a directory that ``load_matrix`` maps. A model that
is fitted on a mapped matrix keeps its own copies of rows in files as well (rows scaled to unit
length, rows gathered for a large tree node), so that what training holds in memory does not grow
with the number of rows' entries. The bits are those of training from memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._csr import csr
from longtail._validation import as_features
from longtail.exceptions import ModelFormatError

__all__ = ["is_mapped", "load_matrix", "save_matrix", "scratch_array", "take_rows"]

_TYPE = "csr-matrix"
_CHUNK = 1 << 22


def save_matrix(path: str | os.PathLike[str], X: Any, *, overwrite: bool = False) -> None:
    """Write a sparse matrix to the directory ``path``, for ``load_matrix``.

    Parameters
    ----------
    path : str or path
        A folder.
    X : matrix, or iterable of matrices
        Anything that is accepted as features (dense rows become sparse), or an iterable of
        blocks of rows, of equal width, where the whole does not fit into memory. Blocks are
        collected in a temporary file beside ``path`` first.
    overwrite : bool, default=False
        Replace what is there.

    Refuses what ``fit`` would refuse (NaN, infinity), no block at all, blocks of different width,
    and a directory that is not empty unless ``overwrite``.

    >>> import tempfile, longtail as lt
    >>> folder = tempfile.mkdtemp() + "/rows"
    >>> blocks = (np.eye(3, dtype=np.float32) * (i + 1) for i in range(2))
    >>> lt.features.save_matrix(folder, blocks)
    >>> lt.features.load_matrix(folder).toarray()[3:]
    array([[2., 0., 0.],
           [0., 2., 0.],
           [0., 0., 2.]], dtype=float32)
    """
    if isinstance(X, Iterator) or (
        isinstance(X, (list, tuple)) and X and getattr(X[0], "ndim", 1) == 2
    ):
        parent = os.path.dirname(os.path.abspath(os.fspath(path)))
        os.makedirs(parent, exist_ok=True)
        with (
            tempfile.TemporaryFile(dir=parent) as columns,
            tempfile.TemporaryFile(dir=parent) as values,
        ):
            indptr, n_cols = _collect(X, columns, values)
            arrays = (indptr, _map(columns, np.int32), _map(values, np.float32))
            _save(path, arrays, n_cols, overwrite)
        return
    matrix = _as_csr(X)
    indices = np.ascontiguousarray(matrix.indices, np.int32)
    arrays = (np.asarray(matrix.indptr, np.int64), indices, matrix.data)
    _save(path, arrays, int(matrix.shape[1]), overwrite)


def load_matrix(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, mmap: bool = True
) -> sp.csr_matrix:
    """Return the matrix saved at ``path``: CSR float32, its entries mapped from the files.

    ``path`` may be a list of shards, saved one by one: their rows are joined in that order, in
    temporary files (``TMPDIR``) that go away with the matrix. Reads the columns once, to check that
    they are in order and within bounds; ``mmap=False`` reads everything into memory. Raises
    ``ModelFormatError`` for a damaged file, and ValueError for shards of different width.

    Parameters
    ----------
    path : str, path or list of these
        What ``save_matrix`` wrote; shards are joined.
    mmap : bool, default=True
        Map arrays from the file instead of reading them.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for i in range(2):
    ...     save_matrix(f"{folder}/{i}", np.eye(2, dtype=np.float32) * (i + 1))
    >>> load_matrix([f"{folder}/0", f"{folder}/1"]).toarray()[:, 0].tolist()
    [1.0, 0.0, 2.0, 0.0]
    """
    if not isinstance(path, (str, os.PathLike)):
        return _joined([load_matrix(shard) for shard in path], mmap)
    state = persist.load(path, mmap=mmap)
    if state.type != _TYPE:
        raise ModelFormatError(f"{os.fspath(path)} holds a {state.type!r}, not a saved matrix")
    n_rows, n_cols = state.count("n_rows", 2**62), state.count("n_cols")
    indptr, indices, values, _ = state.csr("rows", n_rows, n_cols)
    _check_order(indptr, indices, os.fspath(path))
    return csr(indptr, indices, values, n_cols)


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return ``X[rows]``; the rows of a mapped matrix are in temporary files again.

    ``rows``: a mask (n,), or row numbers.
    """
    if not (sp.issparse(X) and is_mapped(X.data)):
        return X[rows]
    numbers = np.flatnonzero(rows) if rows.dtype == bool else rows
    lengths = np.diff(X.indptr)[numbers]
    step = max(1, _CHUNK * len(lengths) // max(int(lengths.sum()), 1))
    blocks = (X[numbers[i : i + step]] for i in range(0, len(numbers), step))
    return _filled(blocks, lengths, int(X.shape[1]), mmap=True)


def is_mapped(array: Any) -> bool:
    """Return whether the memory of an array is that of a mapped file.

    >>> is_mapped(np.zeros(3)), is_mapped(scratch_array(3, np.float32))
    (False, True)
    """
    owner = array
    while owner is not None:
        if isinstance(owner, (np.memmap, mmap.mmap)):
            return True
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return False


def scratch_array(
    size: int, dtype: Any, folder: str | os.PathLike[str] | None = None
) -> np.ndarray:
    """Return an array of ``size`` zeros in a file of its own, which goes away with the array.

    ``folder``: where; None is the system's place for temporary files (``TMPDIR``).
    """
    n_bytes = size * np.dtype(dtype).itemsize
    if n_bytes == 0:
        return np.zeros(0, dtype)
    with tempfile.TemporaryFile(dir=folder, prefix=".rows-") as file:
        try:
            if hasattr(
                os, "posix_fallocate"
            ):  # a full disk shall be an error now, not a crash later
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                file.truncate(n_bytes)
        except OSError as error:
            place = tempfile.gettempdir() if folder is None else os.fspath(folder)
            advice = f"no room for {n_bytes / 1e9:.3g} GB in {place}: set TMPDIR to another folder"
            raise OSError(error.errno, f"{error.strerror}; {advice}") from None
        return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), dtype)


def _joined(shards: list[sp.csr_matrix], mmap: bool) -> sp.csr_matrix:
    """Return the rows of all shards, one after the other."""
    if not shards:
        raise ValueError("there is no shard to load: give at least one")
    widths = {int(shard.shape[1]) for shard in shards}
    if len(widths) > 1:
        raise ValueError(f"shards must have the same width, got {sorted(widths)}")
    if len(shards) == 1 and mmap:
        return shards[0]
    lengths = np.concatenate([np.diff(shard.indptr) for shard in shards])
    return _filled(shards, lengths, widths.pop(), mmap)


def _filled(
    blocks: Iterable[sp.csr_matrix], lengths: np.ndarray, n_cols: int, mmap: bool
) -> sp.csr_matrix:
    """Return a matrix of the rows of ``blocks``, which have ``lengths`` entries each."""
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    size = int(indptr[-1])
    make = scratch_array if mmap else np.empty
    indices, values = make(size, np.int32), make(size, np.float32)
    begin = 0
    for block in blocks:
        for first in range(0, block.nnz, _CHUNK):
            last = min(first + _CHUNK, block.nnz)
            indices[begin : begin + last - first] = block.indices[first:last]
            values[begin : begin + last - first] = block.data[first:last]
            begin += last - first
    return csr(indptr, indices, values, n_cols)


def _as_csr(X: Any) -> sp.csr_matrix:
    X = as_features(X)
    return X if sp.issparse(X) else sp.csr_matrix(X)


def _save(
    path: Any, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], n_cols: int, overwrite: bool
) -> None:
    meta = {"n_rows": len(arrays[0]) - 1, "n_cols": n_cols}
    state = persist.State(_TYPE, meta=meta)
    state.put_csr("rows", (*arrays, n_cols))
    persist.save(path, state, overwrite=overwrite)


def _collect(blocks: Iterable[Any], columns: Any, values: Any) -> tuple[np.ndarray, int]:
    """Append the entries of all blocks to two files; offsets of the rows, and their width."""
    lengths: list[np.ndarray] = []
    width = -1
    for block in blocks:
        rows = _as_csr(block)
        if width not in (-1, rows.shape[1]):
            raise ValueError(f"blocks must have the same width, got {width} and {rows.shape[1]}")
        width = int(rows.shape[1])
        lengths.append(np.diff(rows.indptr).astype(np.int64))
        columns.write(np.ascontiguousarray(rows.indices, np.int32).data)
        values.write(np.ascontiguousarray(rows.data).data)
    if width < 0:
        raise ValueError("there is no block to save: give at least one")
    return np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64), width


def _map(file: Any, dtype: Any) -> np.ndarray:
    file.flush()
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        return np.zeros(0, dtype)
    return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), dtype)


def _check_order(indptr: np.ndarray, indices: np.ndarray, path: str) -> None:
    """Columns ascend within every row: entries that do not begin a row exceed their predecessor."""
    for begin in range(1, len(indices), _CHUNK):
        end = min(begin + _CHUNK, len(indices))
        falls = indices[begin:end] <= indices[begin - 1 : end - 1]
        first, last = np.searchsorted(indptr, [begin, end])
        falls[indptr[first:last] - begin] = False
        if falls.any():
            raise ModelFormatError(f"cannot load {path}: the columns of a row do not ascend")
