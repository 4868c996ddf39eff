"""Predictions matched against truth, once, for every metric and every k.

``Matches`` holds ``gains`` (n, slots): the truth value of each predicted label, 0 for a wrong label
or an empty slot. All metrics are sums over gains: along rows (P, R, DCG and their propensity-scored
forms, which weigh a gain by the label's inverse propensity) or along labels (confusion counts), of
the ranking that was given and of the best one possible. The sums are kept, since reports ask for
the same ones again and again; nothing of size n x L is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args, n_threads
from longtail.answers.topk import TopK
from longtail.metrics.confusion import ConfusionCounts

__all__ = ["Matches", "discounts"]

_BY_LABEL = ("binary", "label_counts", "label_positives")
_IDEAL_DEPTH = 10

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class Matches:
    """A ranking matched against the truth; made by ``match``, given to metrics in place of ``top``.

    Parameters
    ----------
    truth : csr_matrix of shape (n, L)
        The true labels, in canonical form.
    top : TopK
        The ranking.
    gains : ndarray of shape (n, top.k)
        What each predicted label counts: its truth value, or that over its propensity (``under``).
    weights : ndarray of shape (n,) or None
        How much each row counts, float64.
    source : object
        What the truth was given as, if not as ``truth``.
    inverse : ndarray of shape (L,) or None
        Inverse propensities of gains; None for ones.
    n_jobs : int or None
        Number of threads; None is all cores.
    """

    truth: sp.csr_matrix
    top: TopK
    gains: np.ndarray
    weights: np.ndarray | None = None
    source: Any = None
    inverse: np.ndarray | None = None
    n_jobs: int | None = None
    _kept: dict[tuple[Any, ...], Any] = field(default_factory=dict)

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
        return self._keep(("hits", k), lambda: _dot(self.gains, np.ones(k)))

    def dcg(self, k: int) -> np.ndarray:
        """Return the sum of the first k gains of each row, the l-th divided by log2(l + 1),
        (n,).

        Parameters
        ----------
        k : int
            Answers per row that count.
        """
        return self._keep(("dcg", k), lambda: _dot(self.gains, discounts(k)))

    def ideal_hits(self, k: int) -> np.ndarray:
        """Return the largest ``hits`` a ranking of the row could have, (n,).

        Parameters
        ----------
        k : int
            Answers per row that count.
        """
        return self._keep(("ideal_hits", k), lambda: _dot(self._ideal(k), np.ones(k)))

    def ideal_dcg(self, k: int) -> np.ndarray:
        """Return the largest ``dcg`` a ranking of the row could have, (n,).

        Parameters
        ----------
        k : int
            Answers per row that count.
        """
        return self._keep(("ideal_dcg", k), lambda: _dot(self._ideal(k), discounts(k)))

    def _ideal(self, k: int) -> np.ndarray:
        """Return gains of the best ranking, at least k of them where the row has so many labels."""
        gains = self._kept.get(("ideal",))
        if gains is None or gains.shape[1] < k:
            # A little deeper than asked, since reports ask for small k first.
            depth, threads = max(k, min(self.top.k, _IDEAL_DEPTH)), n_threads(self.n_jobs)
            gains = core.ideal_gains(csr_args(self.truth), self.inverse, depth, threads)
            self._kept["ideal",] = gains
        return cast(np.ndarray, gains)

    def under(self, inverse: np.ndarray) -> Matches:
        """Return the same with every gain times the inverse propensity of its label.

        The last propensities are remembered and known by value: arrays can change in place.

        Parameters
        ----------
        inverse : ndarray of shape (L,)
            Inverse propensities.
        """
        scored: Matches | None = self._kept.get(("under",))
        if scored is None or not np.array_equal(cast(Any, scored.inverse), inverse):
            gains = self.gains * np.append(inverse, 0.0)[self.top.indices]  # 0 for padding, -1
            scored = replace(self, gains=gains, inverse=inverse.copy(), _kept={})
            self._kept["under",] = scored
        return scored

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
        return replace(self, truth=truth, gains=(self.gains > 0).astype(np.float32), _kept={})

    def reweighted(self, weights: np.ndarray) -> Matches:
        """Return the same rows, row i counting ``weights[i]`` times.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Weights of rows.
        """
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        # Sums along rows stay as they are; sums along labels are to be made again.
        kept = {key: self._kept[key] for key in self._kept if key[0] not in _BY_LABEL}
        return replace(self, weights=weights, _kept=kept)

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


def discounts(k: int) -> np.ndarray:
    """Return 1 / log2(l + 1) for ranks l = 1 .. k."""
    return 1.0 / np.log2(np.arange(2, k + 2))


def _dot(terms: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """sum_j coefficients[j] * terms[:, j] in double precision; columns that are missing are 0."""
    out = np.zeros(len(terms))
    for j, coefficient in enumerate(coefficients[: terms.shape[1]]):
        out += coefficient * terms[:, j].astype(np.float64)
    return out
