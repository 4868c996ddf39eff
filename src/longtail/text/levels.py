"""Levels of a label tree, as problems of their own: their labels, the tree above, shortlists.

::

    level 1    ●        ●         all nodes are looked at
              ╱ ╲      ╱ ╲
    level 2  ● ● ●    ● ● ●       children of the parents that a row has (teacher forcing), and of
            ╱╲ ...                those that the model of the level above ranks best (matcher aware)
    labels  ● ● ● ● ●
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.data.topk import TopK
from longtail.deep.batches.shortlist_feed import Shortlists
from longtail.tree import LabelTree

__all__ = ["Level", "levels_of", "whole"]


@dataclass(frozen=True)
class Level:
    """Level ``number`` of a tree: ``counts`` (n, K) how many labels of a row lie below each node
    (the relevance R of XR-Transformer), ``child_ptr`` the nodes below each of the level above.
    """

    number: int
    counts: sp.csr_matrix
    child_ptr: np.ndarray
    above: np.ndarray  # parent array of the tree down to this level, nodes of this level first

    @property
    def n_nodes(self) -> int:
        return int(self.counts.shape[1])

    def tree(self) -> LabelTree:
        """Return the tree down to this level, whose nodes here are its labels."""
        return LabelTree(kind="given", hierarchy=self.above)

    def labels(self) -> sp.csr_matrix:
        """Return which nodes each row has, (n, K) of ones."""
        out = self.counts.copy()
        out.data = np.ones_like(out.data)
        return out

    def parents(self, matched: TopK | None) -> sp.csr_matrix:
        """Return the nodes above this level that rows look below, (n, K'): their own and those
        that were matched.
        """
        parent_of = np.repeat(np.arange(len(self.child_ptr) - 1), np.diff(self.child_ptr))
        rows = np.repeat(np.arange(self.counts.shape[0]), np.diff(self.counts.indptr))
        columns = parent_of[self.counts.indices]
        shape = (self.counts.shape[0], len(self.child_ptr) - 1)
        own = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
        if matched is not None:
            own = own + matched.to_csr(binary=True)
        own.sum_duplicates()
        own.data[:] = 1
        return own

    def shortlists(self, matched: TopK | None, most: int, seed: list[int]) -> Shortlists:
        """Return the nodes that each row looks at: the children of ``parents``, at most ``most``.

        Where there are more, some that the row does not have are left out at random. A node that it
        has weighs as much as it has labels below it, the others 1.
        """
        parents = self.parents(matched)
        widths = np.diff(self.child_ptr)
        rng = np.random.default_rng(seed)
        counts, labels, targets, weights = [], [], [], []
        for i in range(parents.shape[0]):
            nodes = parents.indices[parents.indptr[i] : parents.indptr[i + 1]]
            below = _ranges(self.child_ptr[nodes], widths[nodes])
            own = slice(self.counts.indptr[i], self.counts.indptr[i + 1])
            mine = self.counts.indices[own]
            if len(below) > most:
                others = np.setdiff1d(below, mine, assume_unique=True)
                kept = rng.choice(others, max(0, most - len(mine)), replace=False)
                below = np.sort(np.concatenate([mine, kept]))
            at = np.searchsorted(below, mine)
            target = np.zeros(len(below), np.float32)
            weight = np.ones(len(below), np.float32)
            target[at], weight[at] = 1, self.counts.data[own]
            counts.append(len(below))
            labels.append(below.astype(np.int32))
            targets.append(target)
            weights.append(weight)
        return Shortlists(
            np.concatenate([[0], np.cumsum(counts)]),
            np.concatenate(labels),
            np.concatenate(targets),
            np.concatenate(weights),
        )

    def extra_rows(self, matched: TopK | None) -> sp.csr_matrix | None:
        """Return a child of every matched parent, (n, K): rows that its other children see too."""
        if matched is None:
            return None
        parents = matched.to_csr(binary=True)
        first = self.child_ptr[:-1][parents.indices]
        return sp.csr_matrix((parents.data, first, parents.indptr), shape=self.counts.shape)


def levels_of(tree: LabelTree, Y: sp.csr_matrix, most: int) -> list[Level]:
    """Return the levels that have at most ``most`` nodes, from the top."""
    out = []
    for t, size in enumerate(tree.level_sizes_):
        if size > most:
            break
        counts = tree.node_labels(Y, t, value="sum")
        counts.sort_indices()
        out.append(Level(t, counts, np.asarray(tree.child_ptr_[t]), _parents(tree.child_ptr_, t)))
    return out


def whole(tree: LabelTree) -> np.ndarray:
    """Return the parent array of a whole tree, labels first, in their own order."""
    parents = _parents(tree.child_ptr_, len(tree.child_ptr_) - 1)
    n = tree.n_labels_
    return np.concatenate([parents[:n][tree.leaf_of_label_], parents[n:]])


def _parents(child_ptr: list[np.ndarray], level: int) -> np.ndarray:
    """Return the parent array of a tree down to a level: its nodes first, then those above."""
    sizes = [len(ptr) - 1 for ptr in child_ptr[: level + 1]]  # nodes above each level
    out = []
    begin = int(child_ptr[level][-1])
    for t in range(level, 0, -1):
        parent = np.repeat(np.arange(sizes[t]), np.diff(child_ptr[t]))
        out.append(begin + parent)
        begin += sizes[t]
    out.append(np.full(int(child_ptr[0][-1]), -1))
    return np.concatenate(out)


def _ranges(begins: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return begin, begin + 1, … of every range, one after the other."""
    ends = np.cumsum(widths)
    return np.repeat(begins - (ends - widths), widths) + np.arange(
        int(ends[-1]) if len(ends) else 0
    )
