"""``TopK``: the currency of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._forms import answers_of
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_features, as_k, as_width
from longtail.exceptions import MissingDependencyError

__all__ = ["TopK"]


class TopK:
    """The k best labels of each row, best first.

    Equal scores are ordered by the smaller label id.

    Parameters
    ----------
    indices : array of int32, shape (n, k)
        Label ids. A row with fewer than k answers is padded at its end with -1.
    scores : array of float32, shape (n, k)
        Scores, -inf where ``indices`` is -1.
    n_labels : int or None
        Width of the label space, where it is known.

    Raises ValueError for arrays of different shape, a label twice in a row, an id outside
    ``n_labels``, NaN scores, scores that ascend, and padding in front of an answer.

    >>> top = TopK([[2, 0], [1, -1]], [[0.9, 0.5], [0.3, -np.inf]], n_labels=3)
    >>> top.to_csr().toarray()
    array([[0.5, 0. , 0.9],
           [0. , 0.3, 0. ]], dtype=float32)
    """

    __slots__ = ("indices", "n_labels", "scores")

    indices: np.ndarray
    scores: np.ndarray
    n_labels: int | None

    def __init__(self, indices: Any, scores: Any, n_labels: int | None = None) -> None:
        raw = np.asarray(indices)
        if raw.dtype.kind not in "iu" and raw.size:
            raise TypeError(f"indices must be whole numbers, got dtype {raw.dtype}")
        self.indices = np.ascontiguousarray(raw, dtype=np.int32)
        self.scores = np.ascontiguousarray(scores, dtype=np.float32)
        self.n_labels = None if n_labels is None else int(n_labels)
        self._check(raw)

    def _check(self, raw: np.ndarray) -> None:
        ids, scores = self.indices, self.scores
        if ids.ndim != 2 or ids.shape != scores.shape:
            raise ValueError(
                "indices and scores must both have the shape (rows, k), "
                f"got {ids.shape} and {scores.shape}"
            )
        if not ids.size:
            return
        if raw.min() < -1 or raw.max() > np.iinfo(np.int32).max:
            raise ValueError(
                "label ids must lie between -1 (padding) and 2^31 - 1, "
                f"got {raw.min()} to {raw.max()}"
            )
        if self.n_labels is not None and ids.max() >= self.n_labels:
            raise ValueError(
                f"label id {ids.max()} is out of range: there are {self.n_labels} labels"
            )
        if np.isnan(scores).any():
            raise ValueError("scores hold NaN")
        padded = ids < 0
        if (padded[:, :-1] & ~padded[:, 1:]).any():
            raise ValueError("padding (-1) must stand at the end of a row")
        if (scores[padded] != -np.inf).any():
            raise ValueError("padded slots (-1) must have the score -inf")
        if ids.shape[1] > 1:
            if (scores[:, :-1] < scores[:, 1:]).any():
                row = int(np.argmax((scores[:, :-1] < scores[:, 1:]).any(axis=1)))
                raise ValueError(f"scores must not ascend within a row (row {row})")
            ordered = np.sort(ids, axis=1)
            twice = (ordered[:, :-1] == ordered[:, 1:]) & (ordered[:, 1:] >= 0)
            if twice.any():
                row = int(np.argmax(twice.any(axis=1)))
                raise ValueError(f"row {row} names a label twice")

    @classmethod
    def from_scores(cls, scores: Any, k: int, *, n_jobs: int | None = None) -> TopK:
        """Return the top k of a score matrix: all columns of a dense one, stored entries of a
        sparse one.

        Parameters
        ----------
        scores : matrix of shape (n, L)
            Scores; those stored, of a sparse one.
        k : int
            Answers per row.
        n_jobs : int, default=None
            Number of threads; None is all cores. Results do not depend on it.
        """
        matrix = as_features(scores, name="scores")
        k = as_width(k, matrix.shape[1])
        threads = n_threads(n_jobs)
        if sp.issparse(matrix):
            ids, values = core.topk_csr(csr_args(matrix), k, threads)
        else:
            ids, values = core.topk_dense(matrix, k, threads)
        return cls._trusted(ids, values, matrix.shape[1])

    @classmethod
    def from_ranking(cls, ids: Any, n_labels: int | None = None) -> TopK:
        """Return answers without scores: label ids of each row, best first.

        Parameters
        ----------
        ids : array of int, or lists of int
            One list per row, or an integer array (n, k) padded with -1. Rows may be of
            different lengths; then all are taken to be complete. The scores are the negated
            ranks, -1, -2 and so on.
        n_labels : int, default=None
            Number of labels, if known.

        Refuses what ``TopK`` refuses.

        >>> TopK.from_ranking([[2, 0], [1]], n_labels=3).indices
        array([[ 2,  0, -1],
               [ 1, -1, -1]], dtype=int32)
        """
        form, rows = answers_of(ids, "ids")
        if form != "ids":
            raise TypeError(f"ids must hold label ids (whole numbers), got {form}")
        if not isinstance(rows, np.ndarray):
            rows = _padded(rows)
        ranks = -np.arange(1, rows.shape[1] + 1, dtype=np.float32)
        return cls(rows, np.where(rows < 0, np.float32(-np.inf), ranks), n_labels)

    @classmethod
    def _trusted(cls, indices: np.ndarray, scores: np.ndarray, n_labels: int | None) -> TopK:
        """Wrap arrays that a kernel made: already canonical, so not checked again."""
        self = cls.__new__(cls)
        self.indices, self.scores, self.n_labels = indices, scores, n_labels
        return self

    @classmethod
    def nothing(cls, n_rows: int, k: int, n_labels: int | None = None) -> TopK:
        """Return answers of k slots per row that name no label.

        Parameters
        ----------
        n_rows : int
            Number of rows, n.
        k : int
            Answers per row.
        n_labels : int, default=None
            Number of labels, if known.

        >>> TopK.nothing(1, 2).indices
        array([[-1, -1]], dtype=int32)
        """
        indices = np.full((n_rows, k), -1, np.int32)
        return cls._trusted(indices, np.full((n_rows, k), -np.inf, np.float32), n_labels)

    @classmethod
    def stacked(cls, parts: Sequence[TopK], n_labels: int | None = None) -> TopK:
        """Return the answers to the rows of several parts, one below the other.

        Parameters
        ----------
        parts : sequence of TopK
            Answers with the same k.
        n_labels : int, default=None
            Number of labels, if known.

        >>> TopK.stacked([TopK([[0]], [[1.0]]), TopK([[2]], [[0.5]])]).indices.tolist()
        [[0], [2]]
        """
        indices = np.concatenate([part.indices for part in parts])
        return cls._trusted(indices, np.concatenate([part.scores for part in parts]), n_labels)

    @property
    def k(self) -> int:
        """Number of slots per row."""
        return int(self.indices.shape[1])

    def __len__(self) -> int:
        return int(self.indices.shape[0])

    def __getitem__(self, rows: Any) -> TopK:
        """Return a subset of rows (slice, mask or index array)."""
        if isinstance(rows, (int, np.integer)):
            rows = [int(rows)]
        return TopK._trusted(
            np.ascontiguousarray(self.indices[rows]),
            np.ascontiguousarray(self.scores[rows]),
            self.n_labels,
        )

    def padded(self, k: int) -> TopK:
        """Return the same answers with at least k slots per row, padded with -1 and -inf.

        Parameters
        ----------
        k : int
            Answers per row, at least.

        >>> TopK([[3]], [[0.5]]).padded(2).indices
        array([[ 3, -1]], dtype=int32)
        """
        if self.k >= k:
            return self
        out = TopK.nothing(len(self), k, self.n_labels)
        out.indices[:, : self.k], out.scores[:, : self.k] = self.indices, self.scores
        return out

    def head(self, k: int) -> TopK:
        """Return the first k slots of every row.

        Parameters
        ----------
        k : int
            Answers to keep.
        """
        k = min(as_k(k), self.k)
        return TopK._trusted(
            np.ascontiguousarray(self.indices[:, :k]),
            np.ascontiguousarray(self.scores[:, :k]),
            self.n_labels,
        )

    def to_csr(self, *, binary: bool = False) -> sp.csr_matrix:
        """Return the CSR matrix (n, n_labels) of the scores, or of ones with ``binary=True``; no
        padding.

        Parameters
        ----------
        binary : bool, default=False
            Ones in place of scores.
        """
        keep = self.indices >= 0
        width = self.n_labels
        if width is None:
            width = int(self.indices.max()) + 1 if keep.any() else 0
        indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1), dtype=np.int64)])
        values = np.ones(int(keep.sum()), np.float32) if binary else self.scores[keep]
        out = sp.csr_matrix((values, self.indices[keep], indptr), shape=(len(self), width))
        out.sort_indices()
        return out

    def to_frame(
        self, names: Sequence[str] | None = None, *, rows: Any = None, per_text: bool = False
    ) -> Any:
        """Return the answers as a pandas DataFrame that joins back to what was asked.

        Parameters
        ----------
        names : sequence of str, optional
            Label names in the order of ids; without them the column ``label`` holds ids.
        rows : sequence, optional
            What the rows are called, such as the index of the frame that was asked about; numbers
            from 0 by default.
        per_text : bool
            Whether to make one line per row, with the lists ``labels`` and ``scores``, instead of
            one line per answer.

        Returns
        -------
        pandas.DataFrame
            With columns ``row``, ``rank`` (from 1), ``label`` and ``score``; or, ``per_text``,
            with columns ``labels`` and ``scores`` and the index ``row``.

        >>> top = TopK([[2, 0], [1, -1]], [[0.9, 0.5], [0.3, -np.inf]], n_labels=3)
        >>> print(top.to_frame(["a", "b", "c"]).to_string(index=False))
         row  rank label  score
           0     1     c    0.9
           0     2     a    0.5
           1     1     b    0.3
        """
        try:
            import pandas
        except ImportError:
            raise MissingDependencyError("pandas", "tables", "a data frame") from None
        width = int(self.indices.max(initial=-1)) + 1
        if names is not None and len(names) < max(width, self.n_labels or 0):
            raise ValueError(
                f"names has {len(names)} names, but there are {max(width, self.n_labels or 0)} "
                "labels"
            )
        calls = pandas.RangeIndex(len(self)) if rows is None else pandas.Index(rows)
        if len(calls) != len(self):
            raise ValueError(f"rows has {len(calls)} entries, but there are {len(self)} rows")
        keep = self.indices >= 0
        ids = self.indices[keep]
        labels = ids if names is None else np.array([names[i] for i in ids], object)
        if per_text:
            ends = np.cumsum(keep.sum(axis=1))[:-1]
            split = {
                "labels": [part.tolist() for part in np.split(labels, ends)][: len(self)],
                "scores": [part.tolist() for part in np.split(self.scores[keep], ends)][
                    : len(self)
                ],
            }
            return pandas.DataFrame(split, index=calls.rename("row"))
        where, slots = np.nonzero(keep)
        columns = {"row": calls[where], "rank": slots + 1, "label": labels}
        return pandas.DataFrame({**columns, "score": self.scores[keep]})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopK):
            return NotImplemented
        return bool(
            np.array_equal(self.indices, other.indices)
            and np.array_equal(self.scores, other.scores)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        labels = "" if self.n_labels is None else f", n_labels={self.n_labels}"
        return f"TopK({len(self)} rows, k={self.k}{labels})"


def _padded(rows: list[Any]) -> np.ndarray:
    """Return lists of ids as an array; if they differ in length, no row fills the last slot."""
    lengths = np.array([len(row) for row in rows], np.int64)
    longest = int(lengths.max(initial=0))
    ragged = bool((lengths < longest).any()) or not longest
    out = np.full((len(rows), longest + ragged), -1, np.int64)
    flat = [int(label) for row in rows for label in row]
    if flat and not -(2**63) <= min(flat) <= max(flat) < 2**63:
        raise ValueError(f"label ids must lie below 2^31, got {min(flat)} to {max(flat)}")
    out[np.arange(out.shape[1]) < lengths[:, None]] = flat
    return out
