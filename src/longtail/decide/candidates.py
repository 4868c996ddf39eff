"""``Candidates``: probabilities at the door of a decision rule, in one form for every rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._forms import answers_of
from longtail._validation import as_features, as_labels, check_same_rows
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK

__all__ = ["Candidates", "as_candidates", "as_examples"]


@dataclass(frozen=True)
class Candidates:
    """The labels that each row may name, with their probabilities.

    Compressed rows, as in CSR, except that the labels of a row may stand in any order (a ``TopK``
    is used as it is, without a copy). A label that is not stored has probability 0.
    ``allowed`` (L,) uint8 says which labels may be named at all; others are not stored.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    n_labels: int
    allowed: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def args(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """What every kernel takes first."""
        return self.indptr, self.indices, self.values, self.n_labels

    @property
    def longest(self) -> int:
        """The largest number of candidates of a row."""
        return int(np.diff(self.indptr).max(initial=0))

    def expected_positives(self) -> np.ndarray:
        """Return the sum of the probabilities of each label (L,)."""
        total = np.bincount(self.indices, weights=self.values, minlength=self.n_labels)
        return total.astype(np.float64)  # counts of nothing are integers

    def rows(self) -> np.ndarray:
        """Return the row of every stored entry."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.indptr))

    def only(self, labels: np.ndarray) -> Candidates:
        """Return the candidates among some labels, given by a mask (L,)."""
        keep = labels[self.indices]
        counts = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
        return Candidates(
            counts[self.indptr],
            self.indices[keep],
            self.values[keep],
            self.n_labels,
            labels.astype(np.uint8),
        )

    def to_csr(self) -> sp.csr_matrix:
        """Return the matrix (n, L) of stored entries; the labels of its rows may be unsorted."""
        shape = (self.n_rows, self.n_labels)
        return sp.csr_matrix((self.values, self.indices, self.indptr), shape=shape)


def as_candidates(
    eta: Any,
    *,
    include: Any = None,
    exclude: Any = None,
    n_labels: int | None = None,
) -> Candidates:
    """Return probabilities (n, L), a dense or sparse matrix or a ``TopK``, as ``Candidates``.

    Every entry of a dense matrix is a candidate, zeros too; of a sparse one or a ``TopK``, what is
    stored. ``include`` and ``exclude`` name labels (ids or a boolean mask) that may, or may not, be
    named. Refuses NaN, values outside [0, 1], a width other than ``n_labels``, and whole numbers
    and texts in lists or dense arrays, which are labels and not probabilities.

    >>> as_candidates([[0.2, 0.7]], exclude=[0]).values
    array([0.7], dtype=float32)
    """
    if isinstance(eta, Candidates):
        found = eta
    else:
        found = _from_topk(eta) if isinstance(eta, TopK) else _from_matrix(eta)
    if n_labels is not None and found.n_labels != n_labels:
        if not (isinstance(eta, TopK) and eta.n_labels is None and found.n_labels < n_labels):
            raise ValueError(f"eta has {found.n_labels} labels, expected {n_labels}")
        found = Candidates(found.indptr, found.indices, found.values, n_labels)
    if found.values.size:
        low, high = float(found.values.min()), float(found.values.max())
        if low < 0 or high > 1:
            raise ValueError(
                f"eta holds {low if low < 0 else high:g}: decision rules need probabilities in "
                "[0, 1] (predict_proba_topk of a model, or scores put through a calibration)"
            )
    if include is None and exclude is None:
        return found
    lists = [None if labels is None else np.asarray(labels) for labels in (include, exclude)]
    labels = LabelFilter.of(*lists, n_rows=1, n_labels=found.n_labels)
    assert labels is not None
    return found.only(labels.allowed(0, 1)[0])


def as_examples(
    eta: Any, Y: Any, *, include: Any = None, exclude: Any = None
) -> tuple[Candidates, sp.csr_matrix]:
    """Return probabilities (n, L) and the labels of the same rows, for a rule that learns."""
    Y = as_labels(Y)
    found = as_candidates(eta, include=include, exclude=exclude, n_labels=Y.shape[1])
    check_same_rows(found.n_rows, Y.shape[0], "eta")
    if not found.n_rows or not found.n_labels:
        raise ValueError(f"eta has the shape {found.n_rows, found.n_labels}: nothing to learn")
    return found, Y


def _from_topk(top: TopK) -> Candidates:
    named = top.indices >= 0
    n, k = top.indices.shape
    width = top.n_labels
    if width is None:
        width = int(top.indices.max(initial=-1)) + 1
    if named.all():
        indptr = np.arange(n + 1, dtype=np.int64) * k
        return Candidates(indptr, top.indices.reshape(-1), top.scores.reshape(-1), width)
    indptr = np.concatenate([[0], np.cumsum(named.sum(axis=1), dtype=np.int64)])
    return Candidates(indptr, top.indices[named], top.scores[named], width)


def _from_matrix(eta: Any) -> Candidates:
    form, eta = answers_of(eta, "eta")
    if form != "scores":
        raise TypeError(
            f"eta holds label {form}, without probabilities: pass floats, "
            "np.asarray(eta, dtype=float), or a TopK with probabilities as scores"
        )
    matrix = as_features(eta, name="eta")
    n, width = matrix.shape
    if sp.issparse(matrix):
        return Candidates(
            np.ascontiguousarray(matrix.indptr, dtype=np.int64),
            np.ascontiguousarray(matrix.indices, dtype=np.int32),
            np.ascontiguousarray(matrix.data, dtype=np.float32),
            width,
        )
    indptr = np.arange(n + 1, dtype=np.int64) * width
    indices = np.tile(np.arange(width, dtype=np.int32), n)
    return Candidates(indptr, indices, matrix.reshape(-1), width)
