"""``State``: a model as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longtail.exceptions import ModelFormatError

__all__ = ["CsrArrays", "State"]

CsrArrays = tuple[np.ndarray, np.ndarray, np.ndarray, int]  # see longtail._native.csr_args


@dataclass
class State:
    """Everything needed to build a fitted estimator again.

    ``type``: tag from the table in ``longtail._models``; ``params``: keyword arguments of
    ``__init__`` (JSON values); ``arrays``: learned arrays by name; ``meta``: small JSON facts
    (shapes, preprocessing, measurements); ``parts``: states of nested estimators by
    name.

    NumPy scalars in ``params`` and ``meta`` become Python numbers and tuples become lists;
    infinities and NaN are kept. The readers below (``array``, ``csr``, ``strings``, ``count``)
    check what a file claims, so that a kernel never sees an index outside its bounds; use them in
    ``_set_state`` rather than the dictionaries.
    """

    type: str
    params: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, State] = field(default_factory=dict)

    def array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> np.ndarray:
        """Return the array ``name``, refused unless it has this dtype and shape (None: any length).

        Parameters
        ----------
        name : str
            Name of an array.
        dtype : dtype
            What it must hold.
        shape : tuple of int or None
            What its shape must be.

        >>> State("demo", arrays={"bias": np.zeros(3, np.float32)}).array("bias", np.float32, (3,))
        array([0., 0., 0.], dtype=float32)
        """
        found = self.arrays.get(name)
        if found is None:
            raise ModelFormatError(f"a {self.type!r} model must have an array {name!r}")
        fits = len(found.shape) == len(shape) and all(
            want is None or have == want for have, want in zip(found.shape, shape, strict=True)
        )
        if found.dtype != np.dtype(dtype) or not fits:
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise ModelFormatError(
                f"array {name!r} should be {np.dtype(dtype)} of shape ({wanted}), "
                f"it is {found.dtype} of shape {found.shape}"
            )
        return found

    def put_csr(self, name: str, matrix: CsrArrays) -> None:
        """Store a compressed sparse matrix as three arrays; ``csr`` reads it back.

        Parameters
        ----------
        name : str
            What the names of its arrays begin with.
        matrix : tuple
            ``(indptr, indices, values, n_cols)``.
        """
        indptr, indices, values, _ = matrix
        self.arrays[f"{name}_indptr"] = indptr
        self.arrays[f"{name}_indices"] = indices
        self.arrays[f"{name}_values"] = values

    def csr(self, name: str, n_rows: int, n_cols: int) -> CsrArrays:
        """Return the matrix stored by ``put_csr``: its offsets ascend, its columns lie in [0,
        n_cols).

        Parameters
        ----------
        name : str
            Name that ``put_csr`` was given.
        n_rows : int
            Number of rows, n.
        n_cols : int
            Number of columns.
        """
        indptr = self.array(f"{name}_indptr", np.int64, (n_rows + 1,))
        indices = self.array(f"{name}_indices", np.int32, (None,))
        values = self.array(f"{name}_values", np.float32, (len(indices),))
        if indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
            raise ModelFormatError(
                f"row offsets of {name!r} do not ascend from 0 to {len(indices)}"
            )
        if len(indices) and (indices.min() < 0 or indices.max() >= n_cols):
            raise ModelFormatError(
                f"columns of {name!r} must lie in [0, {n_cols}), "
                f"found {indices.min()} to {indices.max()}"
            )
        return indptr, indices, values, n_cols

    def put_strings(self, name: str, strings: Iterable[str]) -> None:
        """Store strings as UTF-8, one behind the other, and where each ends; ``strings`` reads
        them.

        ``name`` is that of one of them: "label_name" makes the arrays "label_names" and
        "label_name_ends".

        Parameters
        ----------
        name : str
            Name of one of them.
        strings : iterable of str
            What to store.
        """
        coded = [string.encode("utf-8", "surrogatepass") for string in strings]
        self.arrays[f"{name}s"] = np.frombuffer(b"".join(coded), np.uint8)
        self.arrays[f"{name}_ends"] = np.cumsum([len(one) for one in coded], dtype=np.int64)

    def strings(self, name: str, count: int | None = None) -> list[str]:
        """Return the strings stored by ``put_strings``, refused unless there are ``count``.

        Parameters
        ----------
        name : str
            Name that ``put_strings`` was given.
        count : int, default=None
            How many there must be; None for any.

        >>> state = State("demo")
        >>> state.put_strings("label_name", ["cat", "dog"])
        >>> state.strings("label_name", 2)
        ['cat', 'dog']
        """
        text = self.array(f"{name}s", np.uint8, (None,)).tobytes()
        ends = self.array(f"{name}_ends", np.int64, (count,))
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        if (ends < starts).any() or len(text) != (ends[-1] if len(ends) else 0):
            raise ModelFormatError(f"array '{name}_ends' does not divide '{name}s'")
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        try:
            return [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairs]
        except UnicodeDecodeError as error:
            raise ModelFormatError(f"array '{name}s' is not UTF-8: {error}") from None

    def count(self, name: str, most: int = 2**31 - 1) -> int:
        """Return the whole number ``meta[name]``, between 0 and ``most``.

        Parameters
        ----------
        name : str
            Name in ``meta``.
        most : int, default=2147483647
            Largest number that is taken.
        """
        value = self.meta.get(name)
        if type(value) is not int or not 0 <= value <= most:
            raise ModelFormatError(
                f"a {self.type!r} model must say {name!r} (0 to {most}), got {value!r}"
            )
        return value
