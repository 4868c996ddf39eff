"""Sums of gains along rows, of the ranking that was given and of the best one possible."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args, n_threads

__all__ = ["RowSums", "discounts"]

_IDEAL_DEPTH = 10


class RowSums:
    """Sums over the first k gains of each row, (n,) float64, computed once for each k.

    ``gains`` (n, slots) are those of the ranking; the ideal ones are the largest values of
    ``truth`` (n, L) times ``inverse`` (L,), inverse propensities or None for ones.
    """

    def __init__(
        self,
        gains: np.ndarray,
        truth: sp.csr_matrix,
        inverse: np.ndarray | None,
        n_jobs: int | None = None,
    ) -> None:
        self.gains, self.truth, self.inverse, self.n_jobs = gains, truth, inverse, n_jobs
        self._ideal = np.empty((truth.shape[0], 0))
        self._sums: dict[tuple[str, int], np.ndarray] = {}

    def hits(self, k: int) -> np.ndarray:
        """Return the sum of the first k gains."""
        return self._sum("hits", k, lambda: _dot(self.gains, np.ones(k)))

    def dcg(self, k: int) -> np.ndarray:
        """Return the sum of the first k gains, the l-th divided by log2(l + 1)."""
        return self._sum("dcg", k, lambda: _dot(self.gains, discounts(k)))

    def ideal_hits(self, k: int) -> np.ndarray:
        """Return the largest ``hits`` a ranking of the row could have."""
        return self._sum("ideal_hits", k, lambda: _dot(self.ideal(k), np.ones(k)))

    def ideal_dcg(self, k: int) -> np.ndarray:
        """Return the largest ``dcg`` a ranking of the row could have."""
        return self._sum("ideal_dcg", k, lambda: _dot(self.ideal(k), discounts(k)))

    def ideal(self, k: int) -> np.ndarray:
        """Return gains of the best ranking, at least k of them where the row has so many labels."""
        if self._ideal.shape[1] < k:
            # A little deeper than asked, since reports ask for small k first.
            depth = max(k, min(self.gains.shape[1], _IDEAL_DEPTH))
            self._ideal = core.ideal_gains(
                csr_args(self.truth), self.inverse, depth, n_threads(self.n_jobs)
            )
        return self._ideal

    def _sum(self, name: str, k: int, make: Callable[[], np.ndarray]) -> np.ndarray:
        if (name, k) not in self._sums:
            self._sums[name, k] = make()
        return self._sums[name, k]


def discounts(k: int) -> np.ndarray:
    """Return 1 / log2(l + 1) for ranks l = 1 .. k."""
    return 1.0 / np.log2(np.arange(2, k + 2))


def _dot(terms: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """sum_j coefficients[j] * terms[:, j] in double precision; columns that are missing are 0."""
    out = np.zeros(len(terms))
    for j, coefficient in enumerate(coefficients[: terms.shape[1]]):
        out += coefficient * terms[:, j].astype(np.float64)
    return out
