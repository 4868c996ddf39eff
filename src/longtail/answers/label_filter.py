"""``LabelFilter``: labels to include or exclude, in the one form that rankers read."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.answers.topk import TopK
from longtail.answers.vocabulary import Vocabulary

__all__ = ["LabelFilter", "LabelLists"]

_BLOCK = 1 << 24  # entries of a dense indicator made at a time
_FEW = 1024  # labels that are sooner searched in vain than left out of a search


@dataclass(frozen=True)
class LabelLists:
    """Lists of label ids, one behind the other: list i is ``ids[ptr[i]:ptr[i + 1]]``.

    ``ptr`` (n_lists + 1) int64, ``ids`` int32; one list serves all rows, or there is one per row.
    ``open``: None, or (n_lists,) uint8 flags of lists that were not given (None for a row).
    """

    ptr: np.ndarray
    ids: np.ndarray
    open: np.ndarray | None = None

    @property
    def shared(self) -> bool:
        return len(self.ptr) == 2

    def native(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        return self.ptr, self.ids, self.open

    def mark(self, start: int, stop: int, n_labels: int, unlisted: bool) -> np.ndarray:
        """Return rows [start, stop) as a dense indicator; rows whose list was not given are
        ``unlisted``.

        Shape (stop - start, L), or (1, L) if one list serves all.
        """
        first, last = (0, 1) if self.shared else (start, stop)
        out = np.zeros((last - first, n_labels), bool)
        row = np.repeat(np.arange(last - first), np.diff(self.ptr[first : last + 1]))
        out[row, self.ids[self.ptr[first] : self.ptr[last]]] = True
        if self.open is not None:
            out[self.open[first:last] != 0] = unlisted
        return out


@dataclass(frozen=True)
class LabelFilter:
    """Which labels a ranker may answer with.

    A label is allowed in a row if ``include`` lists it (or is None) and ``exclude`` does not.

    >>> labels = LabelFilter.of([0, 2, 3], [[2], []], n_rows=2, n_labels=4)
    >>> labels.allowed(0, 2).astype(int)
    array([[1, 0, 0, 1],
           [1, 0, 1, 1]])
    """

    include: LabelLists | None
    exclude: LabelLists | None
    n_rows: int
    n_labels: int

    @classmethod
    def of(
        cls,
        include: Any,
        exclude: Any,
        *,
        n_rows: int,
        n_labels: int,
        names: Vocabulary | None = None,
    ) -> LabelFilter | None:
        """Return the filter of two arguments as users write them, or None if both are None.

        An argument may be a list (tuple, set, array) of label ids or names for all rows; a sequence
        of such lists, one per row, in which None stands for no list; a boolean mask (L,) or (n, L);
        or a sparse matrix (n, L) whose stored non-zeros are listed. Names need ``names``.

        Refuses ids out of range, unknown names, and another number of lists than rows.

        Parameters
        ----------
        include : list of labels, mask or matrix
            Labels to choose from.
        exclude : list of labels, mask or matrix
            Labels to leave out.
        n_rows : int
            Number of rows, n.
        n_labels : int
            Number of labels, L.
        names : Vocabulary, default=None
            Names of labels, if lists may hold them.
        """
        if include is None and exclude is None:
            return None
        reader = _Reader(n_rows, n_labels, names)
        return cls(
            None if include is None else reader.read(include, "include"),
            None if exclude is None else reader.read(exclude, "exclude"),
            n_rows,
            n_labels,
        )

    @property
    def shared(self) -> bool:
        """The same labels are allowed in every row."""
        return all(lists is None or lists.shared for lists in (self.include, self.exclude))

    def native(self) -> tuple[Any, Any]:
        """Return the filter as the compiled core takes it."""
        return (
            None if self.include is None else self.include.native(),
            None if self.exclude is None else self.exclude.native(),
        )

    def allowed(self, start: int, stop: int) -> np.ndarray:
        """Return the indicator of the allowed labels of rows [start, stop), bool (stop - start,
        L).

        Parameters
        ----------
        start : int
            First row.
        stop : int
            Row after the last.
        """
        out = np.ones((stop - start, self.n_labels), bool)
        if self.include is not None:
            out &= self.include.mark(start, stop, self.n_labels, True)
        if self.exclude is not None:
            out &= ~self.exclude.mark(start, stop, self.n_labels, False)
        return out

    def blocks(self) -> Iterable[tuple[int, int]]:
        """Yield ranges of rows whose indicators together fit into some 16 MB."""
        step = max(1, _BLOCK // max(1, self.n_labels))
        for start in range(0, self.n_rows, step):
            yield start, min(self.n_rows, start + step)

    def counts(self) -> np.ndarray:
        """Return the number of allowed labels of every row (n,) int64."""
        out = np.zeros(self.n_rows, np.int64)
        if self.shared:
            out[:] = self.allowed(0, 1).sum() if self.n_rows else 0
            return out
        for start, stop in self.blocks():
            out[start:stop] = self.allowed(start, stop).sum(axis=1)
        return out

    def best(self, k: int, search: Callable[[slice, np.ndarray, int], TopK]) -> TopK:
        """Return the k best allowed labels of every row, by a ranker that can search some labels
        alone.

        ``search(rows, ids, wanted)`` ranks the labels ``ids`` (ascending) for some rows and returns
        the best ``wanted``, numbered by their place in ``ids``. Those are asked for that any row of
        a block may be answered with, or all labels if that leaves out a few only, and as many as
        surely hold k allowed ones.

        Parameters
        ----------
        k : int
            Answers per row.
        search : callable
            ``search(rows, ids, k)``, the k best of some labels for a range of rows.

        >>> labels = LabelFilter.of([[0, 2], [2, 3]], None, n_rows=2, n_labels=5000)
        >>> ranked = TopK([[2, 0], [1, 0]], [[3, 1], [5, 4]])  # of labels 0, 2 and 3
        >>> labels.best(1, lambda rows, ids, wanted: ranked).indices
        array([[0],
               [2]], dtype=int32)
        """
        parts = [TopK.nothing(0, k)]
        for start, stop in [(0, self.n_rows)] if self.shared else self.blocks():
            if start == stop:
                continue
            allowed = self.allowed(start, start + 1 if self.shared else stop)
            ids = np.flatnonzero(allowed.any(axis=0))
            if not len(ids):
                parts.append(TopK.nothing(stop - start, k))
                continue
            if self.n_labels - len(ids) <= _FEW:
                ids = np.arange(self.n_labels)
            barred = len(ids) - int(allowed.sum(axis=1).min())
            top = search(slice(start, stop), ids, min(k + barred, len(ids)))
            named = np.where(top.indices >= 0, ids[top.indices], -1).astype(np.int32)
            parts.append(self.keep(TopK._trusted(named, top.scores, None), k, first=start))
        return TopK.stacked(parts, self.n_labels)

    def keep(self, top: TopK, k: int, *, first: int = 0) -> TopK:
        """Return the first k allowed answers of every row, padded. ``top`` has the rows from
        ``first``.

        Parameters
        ----------
        top : TopK
            The answers, best first.
        k : int
            Answers per row.
        first : int, default=0
            Row of the filter that the first answers belong to.
        """
        out = TopK.nothing(len(top), k, top.n_labels)
        step = max(1, _BLOCK // max(1, self.n_labels))
        for start in range(0, len(top), step):
            stop = min(len(top), start + step)
            ids = top.indices[start:stop]
            allowed = self.allowed(first + start, first + stop)
            good = np.take_along_axis(allowed, np.maximum(ids, 0), axis=1)
            good &= ids >= 0
            slot = np.cumsum(good, axis=1) - 1
            good &= slot < k
            row, column = np.nonzero(good)
            out.indices[start + row, slot[row, column]] = ids[row, column]
            out.scores[start + row, slot[row, column]] = top.scores[start + row, column]
        return out


@dataclass
class _Reader:
    n_rows: int
    n_labels: int
    names: Vocabulary | None

    def read(self, value: Any, name: str) -> LabelLists:
        if sp.issparse(value) or (isinstance(value, np.ndarray) and value.dtype == bool):
            return self._from_matrix(value, name)
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise TypeError(
                f"{name} must be a list of labels, or one list per row, got {value!r}: "
                f"write {name}=[{value!r}] for a single label"
            )
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
            return _joined([self._ids(value, name)])
        items = list(value)
        if all(isinstance(item, (str, numbers.Integral)) for item in items):
            return _joined([self._ids(items, name)])
        if isinstance(value, (set, frozenset)) or not isinstance(value, (Sequence, np.ndarray)):
            raise TypeError(f"{name} holds {items[0]!r}: lists for single rows must come in order")
        if len(items) != self.n_rows:
            raise ValueError(
                f"{name} has {len(items)} lists, but there are {self.n_rows} rows: "
                "give one list of labels for all rows, or one per row"
            )
        lists = [
            None if row is None else self._ids(row, f"{name}[{i}]") for i, row in enumerate(items)
        ]
        return _joined(lists)

    def _from_matrix(self, value: Any, name: str) -> LabelLists:
        if not sp.issparse(value) and value.ndim == 1:
            if len(value) != self.n_labels:
                raise ValueError(
                    f"{name} is a mask of {len(value)} labels, but there are {self.n_labels}"
                )
            return _joined([np.flatnonzero(value).astype(np.int32)])
        matrix = sp.csr_matrix(value).astype(bool)
        if matrix.shape != (self.n_rows, self.n_labels):
            raise ValueError(
                f"{name} has the shape {matrix.shape}, expected rows by labels, "
                f"{(self.n_rows, self.n_labels)}"
            )
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return LabelLists(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))

    def _ids(self, labels: Any, name: str) -> np.ndarray:
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise TypeError(f"{name} must be a list of labels, got {labels!r}")
        if not (isinstance(labels, np.ndarray) and labels.dtype.kind in "iu"):
            labels = [self._id(label, name) for label in labels]
        ids = np.asarray(labels, np.int64).reshape(-1)
        if len(ids) and (ids.min() < 0 or ids.max() >= self.n_labels):
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise ValueError(
                f"{name} names label {wrong}, but there are {self.n_labels} labels "
                f"(0 to {self.n_labels - 1})"
            )
        return ids.astype(np.int32)

    def _id(self, label: Any, name: str) -> int:
        if isinstance(label, numbers.Integral) and not isinstance(label, bool):
            return int(label)
        if not isinstance(label, str):
            raise TypeError(f"{name} holds {label!r}, which is neither a label id nor a name")
        if self.names is None:
            raise ValueError(
                f"{name} names the label {label!r}, but the model knows no names: "
                "call name_labels first, or give ids"
            )
        if label not in self.names:
            raise ValueError(f"{name} names {label!r}, which is no label of this model")
        return self.names.id(label)


def _joined(lists: Sequence[np.ndarray | None]) -> LabelLists:
    missing = np.array([ids is None for ids in lists], np.uint8)
    known = [ids if ids is not None else np.zeros(0, np.int32) for ids in lists]
    ptr = np.zeros(len(known) + 1, np.int64)
    np.cumsum([len(ids) for ids in known], out=ptr[1:])
    ids = np.concatenate(known) if known else np.zeros(0, np.int32)
    return LabelLists(ptr, ids, missing if missing.any() else None)
