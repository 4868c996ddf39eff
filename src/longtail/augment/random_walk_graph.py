"""``random_walk``: labels that are near a label in the graph of rows and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_k, as_seed
from longtail.augment.co_occurrence_graph import as_ids, as_share, counted, with_own

__all__ = ["random_walk"]

_BLOCK = 4096  # walks at a time


def random_walk(
    Y: Any,
    *,
    length: int = 400,
    restart: float = 0.8,
    keep: int = 10,
    labels: Any = None,
    filter_pairs: Any = None,
    random_state: Any = 0,
) -> sp.csr_matrix:
    """Return how often walks from label j come by label i, CSR float32 (L, L).

    A walk begins at label j. In each of ``length`` steps it returns to j with probability
    ``restart``, and then goes to a random row of the label where it is, and on to a random label of
    that row. With W_ji the visits of label i, entry (j, i) is W_ji / W_jj, at most 1, for the
    ``keep`` most visited labels, j among them; entry (j, j) is 1. Labels that share no row with j,
    but a label that does, can be reached: unlike in ``co_occurrence``.

    ``labels`` and ``filter_pairs`` as there. Every label has random numbers of its own, so a walk
    depends on ``random_state`` and the data, not on what other labels are asked for.

    Parameters
    ----------
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    length : int, default=400
        Steps of a walk.
    restart : float, default=0.8
        Probability to go back to the first label.
    keep : int, default=10
        Most visited labels that are kept for each one.
    labels : array of int, default=None
        Labels to begin at; None is all.
    filter_pairs : array of shape (m, 2), default=None
        Pairs (row, label) that are not walked over.
    random_state : int, Generator or None, default=0
        Seed.

    >>> Y = np.array([[1, 1, 0], [0, 1, 1]])
    >>> walks = random_walk(Y).toarray()
    >>> bool(walks[0, 2] > 0), bool(walks[0, 1] > walks[0, 2])
    (True, True)

    The defaults are those of the graph that Gandalf is compared with in its paper.
    """
    length, keep = as_k(length, "length"), as_k(keep, "keep")
    restart = as_share(restart, "restart")
    Y = counted(Y, filter_pairs)
    chosen = as_ids(labels, Y.shape[1])
    graph = _Graph(Y, as_seed(random_state), int(restart * 2**32))
    parts = [
        _nearest(graph.walk(ids, length), ids, keep, Y.shape[1])
        for ids in (chosen[a : a + _BLOCK] for a in range(0, len(chosen), _BLOCK))
    ]
    if not parts:
        return sp.csr_matrix((0, Y.shape[1]), dtype=np.float32)
    return sp.vstack(parts, format="csr", dtype=np.float32)


class _Graph:
    """Rows and labels, and who is whose neighbour."""

    def __init__(self, Y: sp.csr_matrix, seed: int, restart: int) -> None:
        by_label = Y.tocsc()
        self.row_starts, self.labels_of = Y.indptr.astype(np.int64), Y.indices
        self.label_starts, self.rows_of = by_label.indptr.astype(np.int64), by_label.indices
        self.seed, self.restart = np.uint64(seed), np.uint64(restart)

    def walk(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Return the labels that walks visit, (m, length + 1) int32, the first one included; a
        label without rows stays where it is.
        """
        out = np.empty((len(starts), length + 1), np.int32)
        out[:] = starts[:, None]
        can = np.flatnonzero(self.label_starts[starts + 1] > self.label_starts[starts])
        begin = starts[can]
        here = begin
        keys = _mixed(begin.astype(np.uint64) ^ _mixed(self.seed))
        for step in range(1, length + 1):
            keys = _mixed(keys)
            here = np.where((keys >> np.uint64(32)) < self.restart, begin, here)
            row = self.rows_of[_drawn(self.label_starts, here, keys)]
            here = self.labels_of[_drawn(self.row_starts, row, _mixed(~keys))]
            out[can, step] = here
        return out


def _drawn(starts: np.ndarray, at: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return one of the places ``starts[at]`` to ``starts[at + 1]``, by the lower half of a key."""
    first = starts[at]
    size = (starts[at + 1] - first).astype(np.uint64)
    chosen = ((keys & np.uint64(0xFFFFFFFF)) * size) >> np.uint64(32)
    return np.asarray(first + chosen.astype(np.int64))


def _mixed(keys: Any) -> Any:
    """Return 64-bit hashes of 64-bit keys (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        z = keys + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _nearest(visits: np.ndarray, own: np.ndarray, keep: int, n_labels: int) -> sp.csr_matrix:
    """Return the shares of the most visited labels of walks (m, steps)."""
    visits = np.sort(visits, axis=1)
    first = np.ones(visits.shape, bool)
    first[:, 1:] = visits[:, 1:] != visits[:, :-1]
    places = np.flatnonzero(first)
    rows, labels = places // visits.shape[1], visits.ravel()[places].astype(np.int64)
    counts = np.diff(np.append(places, visits.size))
    mine = labels == own[rows]
    own_counts = counts[mine]  # one for each row, in order
    rows, labels, counts = rows[~mine], labels[~mine], counts[~mine]
    order = np.lexsort((labels, -counts, rows))
    rows, labels, counts = rows[order], labels[order], counts[order]
    begins = np.searchsorted(rows, np.arange(len(own)))
    kept = np.arange(len(rows)) - begins[rows] < keep - 1
    rows, labels, counts = rows[kept], labels[kept], counts[kept]
    return with_own(rows, labels, np.minimum(counts / own_counts[rows], 1.0), own, n_labels)
