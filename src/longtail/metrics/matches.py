"""Predictions matched against truth, once, for every metric and every k.

``Matches`` holds ``gains`` (n, slots): the truth value of each predicted label, 0 for a wrong label
or an empty slot. All metrics are sums over gains: along rows (P, R, DCG and their propensity-scored
forms, which weigh a gain by the label's inverse propensity) or along labels (confusion counts). The
sums are cached, since reports ask for the same ones again and again; nothing of size n x L is ever
formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args, n_threads
from longtail.data.topk import TopK
from longtail.metrics.confusion import ConfusionCounts

__all__ = ["Matches", "discounts"]

_IDEAL_DEPTH = 10
_BY_LABEL = ("binary", "counts", "label_positives")

T = TypeVar("T")


class Matches:
    """A ranking matched against the truth. Made by ``match``; given to a metric in the place of
    ``top``.

    ``truth`` (n, L) canonical CSR; ``top`` the ranking; ``gains`` (n, top.k) float32, the truth
    value of each predicted label; ``weights`` (n,) float64 or None, how much each row counts.
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
        self._cache: dict[tuple[Any, ...], Any] = {}
        self._inverse: np.ndarray | None = None

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

    # Sums along rows, each (n,) float64.

    def hits(self, k: int) -> np.ndarray:
        """Sum of the first k gains of each row."""
        return self._prefix("hits", self.gains, np.ones(k))

    def dcg(self, k: int) -> np.ndarray:
        """Sum of the first k gains of each row, the l-th divided by log2(l + 1)."""
        return self._prefix("dcg", self.gains, discounts(k))

    def ideal_dcg(self, k: int) -> np.ndarray:
        """The largest DCG@k a ranking of the row could have."""
        return self._prefix("ideal_dcg", self._ideal(None, k), discounts(k))

    def weighted_hits(self, inverse: np.ndarray, k: int) -> np.ndarray:
        """``hits`` with each gain times its label's inverse propensity."""
        return self._prefix("ps_hits", self._weighted_gains(inverse), np.ones(k))

    def weighted_dcg(self, inverse: np.ndarray, k: int) -> np.ndarray:
        """``dcg`` with each gain times its label's inverse propensity."""
        return self._prefix("ps_dcg", self._weighted_gains(inverse), discounts(k))

    def ideal_weighted_hits(self, inverse: np.ndarray, k: int) -> np.ndarray:
        """The largest ``weighted_hits`` a ranking of the row could have."""
        return self._prefix("ps_ideal_hits", self._ideal(inverse, k), np.ones(k))

    def ideal_weighted_dcg(self, inverse: np.ndarray, k: int) -> np.ndarray:
        """The largest ``weighted_dcg`` a ranking of the row could have."""
        return self._prefix("ps_ideal_dcg", self._ideal(inverse, k), discounts(k))

    def predicted(self, k: int) -> np.ndarray:
        """How many labels a row predicts in its first k slots (k, unless it is padded)."""
        return self._cached(
            ("predicted", k),
            lambda: np.count_nonzero(self.top.indices[:, :k] >= 0, axis=1).astype(np.float64),
        )

    def positives(self) -> np.ndarray:
        """Sum of the truth values of each row."""
        return self._cached(("positives",), lambda: _row_sums(self.truth))

    # Sums along labels.

    def label_counts(self, k: int) -> ConfusionCounts:
        """Confusion counts of every label at k."""
        return self._cached(("counts", k), lambda: self._count(k))

    def _count(self, k: int) -> ConfusionCounts:
        ids, k = self.top.indices, min(k, self.top.k)
        positives = self._cached(
            ("label_positives",), lambda: core.add_by_label_csr(*csr_args(self.truth), self.weights)
        )
        return ConfusionCounts(
            core.add_by_label_topk(ids, k, self.gains, self.weights, self.n_labels),
            core.add_by_label_topk(ids, k, None, self.weights, self.n_labels),
            positives,
            float(self.n_rows if self.weights is None else self.weights.sum()),
        )

    def total_counts(self, k: int) -> ConfusionCounts:
        """The counts of all labels added up, as of one label with n L rows: what micro means are
        made of.
        """
        return ConfusionCounts(
            self._total(self.hits(k)),
            self._total(self.predicted(k)),
            self._total(self.positives()),
            self._total(np.ones(self.n_rows)) * self.n_labels,
        )

    def _total(self, per_row: np.ndarray) -> Any:
        return per_row.sum() if self.weights is None else per_row @ self.weights

    # Variants.

    def binary(self) -> Matches:
        """The same with every truth value counted as 1."""
        return self._cached(("binary",), self._binarised)

    def _binarised(self) -> Matches:
        if not self.truth.nnz or self.truth.data.min() == 1:
            return self
        truth = sp.csr_matrix(
            (np.ones_like(self.truth.data), self.truth.indices, self.truth.indptr),
            shape=self.truth.shape,
        )
        gains = (self.gains > 0).astype(np.float32)
        return Matches(truth, self.top, gains, weights=self.weights, n_jobs=self.n_jobs)

    def reweighted(self, weights: np.ndarray) -> Matches:
        """The same rows, row i counting ``weights[i]`` times."""
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
        out._cache = {key: self._cache[key] for key in self._cache if key[0] not in _BY_LABEL}
        out._inverse = self._inverse
        return out

    # Plumbing.

    def _cached(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = make()
        return cast(T, self._cache[key])

    def _prefix(self, name: str, terms: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """sum_j coefficients[j] * terms[:, j] in double precision, column by column."""
        return self._cached((name, len(coefficients)), lambda: _dot(terms, coefficients))

    def _ideal(self, inverse: np.ndarray | None, k: int) -> np.ndarray:
        if inverse is not None:
            self._use_inverse(inverse)
        # A little deeper than asked, since reports ask for small k first.
        width = max(k, min(self.top.k, _IDEAL_DEPTH))
        name = "ideal" if inverse is None else "ps_ideal"
        return self._cached(
            (name, width),
            lambda: core.ideal_gains(*csr_args(self.truth), inverse, width, n_threads(self.n_jobs)),
        )

    def _weighted_gains(self, inverse: np.ndarray) -> np.ndarray:
        self._use_inverse(inverse)
        # Padding (-1) reads the weight appended for it, times a gain of 0.
        return self._cached(
            ("ps_gains",), lambda: self.gains * np.append(inverse, 0.0)[self.top.indices]
        )

    def _use_inverse(self, inverse: np.ndarray) -> None:
        """Forgets what was computed under other propensities (compared by value: arrays can be
        changed in place).
        """
        if self._inverse is None or not np.array_equal(self._inverse, inverse):
            self._inverse = inverse.copy()
            for key in [key for key in self._cache if key[0].startswith("ps_")]:
                del self._cache[key]


def discounts(k: int) -> np.ndarray:
    """1 / log2(l + 1) for ranks l = 1 .. k."""
    return 1.0 / np.log2(np.arange(2, k + 2))


def _dot(terms: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    out = np.zeros(len(terms))
    for j, coefficient in enumerate(coefficients[: terms.shape[1]]):
        out += coefficient * terms[:, j].astype(np.float64)
    return out


def _row_sums(matrix: sp.csr_matrix) -> np.ndarray:
    out = np.zeros(matrix.shape[0])
    filled = np.flatnonzero(np.diff(matrix.indptr))
    if len(filled):
        out[filled] = np.add.reduceat(matrix.data, matrix.indptr[filled], dtype=np.float64)
    return out
