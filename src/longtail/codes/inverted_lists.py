"""``InvertedLists``: approximate search by inner product."""

from __future__ import annotations

import numpy as np

from longtail._native import core
from longtail._products import PackedRows

__all__ = ["InvertedLists"]

_ITERATIONS = 6
_SAMPLE = 64  # rows per list that the centroids are learned from


class InvertedLists:
    """Rows clustered by k-means into sqrt(n) lists; a query looks into the ``n_probes`` lists whose
    centroids have the largest inner product with it, and compares exactly there.

    Costs O(sqrt(n) d) for the centroids and about ``n_probes / sqrt(n)`` of the exact search. Rows
    it misses lie in lists it did not look into: with ``n_probes`` equal to the number of lists it
    misses none.

    >>> rows = np.eye(4, dtype=np.float32)
    >>> InvertedLists(rows).search(rows[:1], k=1, n_probes=2, n_threads=1)[0]
    array([[0]], dtype=int32)
    """

    def __init__(self, rows: np.ndarray, *, seed: int = 0, n_threads: int = 1) -> None:
        n, d = rows.shape
        n_lists = max(1, round(n**0.5))
        rng = np.random.default_rng(seed)
        sample = rows[np.sort(rng.permutation(n)[: _SAMPLE * n_lists])]
        self.centroids = sample[np.sort(rng.permutation(len(sample))[:n_lists])].copy()
        for _ in range(_ITERATIONS):
            nearest = self._nearest(sample, n_threads)
            sums = np.zeros((n_lists, d))
            np.add.at(sums, nearest, sample)
            counts = np.bincount(nearest, minlength=n_lists)[:, None]
            filled = counts[:, 0] > 0
            self.centroids[filled] = (sums[filled] / counts[filled]).astype(np.float32)
        nearest = self._nearest(rows, n_threads)
        counts = np.bincount(nearest, minlength=n_lists)
        self.list_ptr = np.concatenate([[0], np.cumsum(-(-counts // 16) * 16)]).astype(np.int64)
        order = np.argsort(nearest, kind="stable")
        first = np.concatenate([[0], np.cumsum(counts)])
        place = self.list_ptr[nearest[order]] + np.arange(n) - first[nearest[order]]
        self.row_of = np.full(self.list_ptr[-1], -1, np.int32)
        self.row_of[place] = order
        packed = np.zeros((len(self.row_of), d), np.float32)
        packed[place] = rows[order]
        self.blocks = PackedRows(packed).blocks
        self._packed_centroids = PackedRows(self.centroids)

    def _nearest(self, rows: np.ndarray, n_threads: int) -> np.ndarray:
        """Return the centroid at the smallest distance: of largest ``<row, m> - |m|^2 / 2``."""
        bias = -0.5 * np.einsum("ij,ij->i", self.centroids, self.centroids).astype(np.float32)
        ids, _ = PackedRows(self.centroids).top(np.ascontiguousarray(rows), 1, n_threads, bias)
        return ids[:, 0]

    def search(
        self, queries: np.ndarray, k: int, n_probes: int, n_threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and inner products (n, k), best first, padded with -1 and -inf."""
        probes, _ = self._packed_centroids.top(
            queries, min(n_probes, len(self.centroids)), n_threads
        )
        return core.probe_lists(  # type: ignore[no-any-return]
            self.list_ptr, self.row_of, self.blocks, probes, queries, k, n_threads
        )
