"""Predictions matched against truth, once, for every metric and every k.

``Matches`` holds ``gains`` (n, slots): the truth value of each predicted label, 0 for a wrong label
or an empty slot. All metrics are sums over gains: along rows (P, R, DCG and their propensity-scored
forms, which weigh a gain by the label's inverse propensity) or along labels (confusion counts). The
sums are kept, since reports ask for the same ones again and again; nothing of size n x L is ever
formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args
from longtail.answers.topk import TopK
from longtail.metrics.confusion import ConfusionCounts
from longtail.metrics.row_sums import RowSums

__all__ = ["Matches"]

_BY_LABEL = ("binary", "label_counts", "label_positives")

T = TypeVar("T")


class Matches:
    """A ranking matched against the truth; made by ``match``, given to metrics in place of ``top``.

    Parameters
    ----------
    truth : csr_matrix of shape (n, L)
        The true labels, in canonical form.
    top : TopK
        The ranking.
    gains : ndarray of shape (n, top.k)
        The truth value of each predicted label, float32.
    weights : ndarray of shape (n,) or None
        How much each row counts, float64.
    source : object
        What the truth was given as; None for ``truth`` itself.
    n_jobs : int or None
        Number of threads; None is all cores.
    """

    truth: sp.csr_matrix
    top: TopK
    gains: np.ndarray
    weights: np.ndarray | None

    def __init__(
        self,
        truth: sp.csr_matrix,
        top: TopK,
        gains: np.ndarray,
        *,
        weights: np.ndarray | None = None,
        source: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.truth, self.top, self.gains, self.weights = truth, top, gains, weights
        self.source = truth if source is None else source
        self.n_jobs = n_jobs
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._plain = RowSums(gains, truth, None, n_jobs)
        self._scored: RowSums | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.truth.shape[0])

    @property
    def n_labels(self) -> int:
        """Width of the label space, L."""
        return int(self.truth.shape[1])

    def __repr__(self) -> str:
        return f"Matches({self.n_rows} rows, {self.n_labels} labels, k={self.top.k})"

    # Sums along rows.

    def hits(self, k: int) -> np.ndarray:
        """Return the sum of the first k gains of each row, (n,).

        Parameters
        ----------
        k : int
            Answers per row that count.
        """
        return self._plain.hits(k)

    def dcg(self, k: int) -> np.ndarray:
        """Return the sum of the first k gains of each row, the l-th divided by log2(l + 1),
        (n,).

        Parameters
        ----------
        k : int
            Answers per row that count.
        """
        return self._plain.dcg(k)

    def ideal_dcg(self, k: int) -> np.ndarray:
        """Return the largest DCG@k a ranking of the row could have, (n,).

        Parameters
        ----------
        k : int
            Answers per row that count.
        """
        return self._plain.ideal_dcg(k)

    def under(self, inverse: np.ndarray) -> RowSums:
        """Return sums of gains times the inverse propensity of their label.

        The last propensities are remembered and known by value: arrays can change in place.

        Parameters
        ----------
        inverse : ndarray of shape (L,)
            Inverse propensities.
        """
        if self._scored is None or not np.array_equal(cast(Any, self._scored.inverse), inverse):
            inverse = inverse.copy()
            weights = np.append(inverse, 0.0)  # the last one is for padding, label -1
            gains = self.gains * weights[self.top.indices]
            self._scored = RowSums(gains, self.truth, inverse, self.n_jobs)
        return self._scored

    def predicted(self, k: int) -> np.ndarray:
        """Return how many labels each row predicts in its first k slots (k, unless it is padded),
        (n,).

        Parameters
        ----------
        k : int
            Answers per row that count.
        """
        return self._keep(
            ("predicted", k),
            lambda: np.count_nonzero(self.top.indices[:, :k] >= 0, axis=1).astype(np.float64),
        )

    def positives(self) -> np.ndarray:
        """Return the sum of the truth values of each row, (n,)."""
        return self._keep(("positives",), lambda: _row_sums(self.truth))

    # Sums along labels.

    def label_counts(self, k: int) -> ConfusionCounts:
        """Return confusion counts of every label at k.

        Parameters
        ----------
        k : int
            Answers per row that count.
        """
        return self._keep(("label_counts", k), lambda: self._count_labels(min(k, self.top.k)))

    def _count_labels(self, k: int) -> ConfusionCounts:
        ids = self.top.indices
        return ConfusionCounts(
            core.add_by_label_topk(ids, k, self.gains, self.weights, self.n_labels),
            core.add_by_label_topk(ids, k, None, self.weights, self.n_labels),
            self._keep(
                ("label_positives",),
                lambda: core.add_by_label_csr(csr_args(self.truth), self.weights),
            ),
            self.total_weight(),
        )

    def total_counts(self, k: int) -> ConfusionCounts:
        """Return the counts of all labels added up, as of one label with n L rows: for micro
        means.

        Parameters
        ----------
        k : int
            Answers per row that count.
        """
        return ConfusionCounts(
            self._total(self.hits(k)),
            self._total(self.predicted(k)),
            self._total(self.positives()),
            self.total_weight() * self.n_labels,
        )

    def total_weight(self) -> float:
        """Return the number of rows, or the sum of their weights."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    def _total(self, per_row: np.ndarray) -> Any:
        return per_row.sum() if self.weights is None else per_row @ self.weights

    # Variants.

    def binary(self) -> Matches:
        """Return the same with every truth value counted as 1."""
        return self._keep(("binary",), self._binarised)

    def _binarised(self) -> Matches:
        if not self.truth.nnz or self.truth.data.min() == 1:
            return self
        ones = np.ones_like(self.truth.data)
        truth = sp.csr_matrix((ones, self.truth.indices, self.truth.indptr), shape=self.truth.shape)
        gains = (self.gains > 0).astype(np.float32)
        return Matches(truth, self.top, gains, weights=self.weights, n_jobs=self.n_jobs)

    def reweighted(self, weights: np.ndarray) -> Matches:
        """Return the same rows, row i counting ``weights[i]`` times.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Weights of rows.
        """
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        out = Matches(
            self.truth,
            self.top,
            self.gains,
            weights=weights,
            source=self.source,
            n_jobs=self.n_jobs,
        )
        # Sums along rows stay as they are; sums along labels are to be made again.
        out._kept = {key: self._kept[key] for key in self._kept if key[0] not in _BY_LABEL}
        out._plain, out._scored = self._plain, self._scored
        return out

    def _keep(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])


def _row_sums(matrix: sp.csr_matrix) -> np.ndarray:
    out = np.zeros(matrix.shape[0])
    filled = np.flatnonzero(np.diff(matrix.indptr))
    if len(filled):
        out[filled] = np.add.reduceat(matrix.data, matrix.indptr[filled], dtype=np.float64)
    return out
