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

from longtail.answers.topk import TopK
from longtail.linear.train.level import LevelProblem, by_column
from longtail.tree import LabelTree

__all__ = ["Level", "NodeLists", "levels_of", "whole"]


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
        that were matched; on the first level the root.
        """
        n = self.counts.shape[0]
        if self.number == 0:
            return sp.csr_matrix(np.ones((n, 1), np.float32))
        parent_of = np.repeat(np.arange(len(self.child_ptr) - 1), np.diff(self.child_ptr))
        rows = np.repeat(np.arange(n), np.diff(self.counts.indptr))
        columns = parent_of[self.counts.indices]
        shape = (n, len(self.child_ptr) - 1)
        out = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
        if matched is not None:
            out = out + matched.to_csr(binary=True)
        out.sum_duplicates()
        out.data[:] = 1
        return out

    def problem(self, matched: TopK | None, cost: float, *, count_weights: bool) -> LevelProblem:
        """Return the linear problem of this level over the same shortlists, all errors at the same
        cost or, with ``count_weights``, positives as often as the row has labels below the node.
        """
        counts = by_column(self.counts)
        return LevelProblem(
            parents=by_column(self.parents(matched)),
            child_ptr=self.child_ptr,
            positives=by_column(self.labels()),
            relevance=counts.data if count_weights else None,
            positive_cost=cost,
            negative_cost=cost,
        )

    def extra_rows(self, matched: TopK | None) -> sp.csr_matrix | None:
        """Return a child of every matched parent, (n, K): rows that its other children see too."""
        if matched is None:
            return None
        parents = matched.to_csr(binary=True)
        first = self.child_ptr[:-1][parents.indices]
        return sp.csr_matrix((parents.data, first, parents.indptr), shape=self.counts.shape)


class NodeLists:
    """The nodes of a level that each row looks at: the children of ``Level.parents``.

    At most ``most`` of them: where there are more, some that the row does not have are left out at
    random, others each time. A node that the row has weighs as many labels as it has below it (or
    1), the others 1. All weights are divided by ``width``, the length of the longest list, so that
    their sum over a row is a mean over a padded list.
    """

    def __init__(
        self, level: Level, matched: TopK | None, most: int, *, count_weights: bool = True
    ) -> None:
        self.parents, self.child_ptr = level.parents(matched), level.child_ptr
        self.counts, self.most = level.counts, most
        self.count_weights = count_weights
        lengths = self.parents @ np.diff(level.child_ptr)
        own = np.diff(self.counts.indptr)
        longest = np.maximum(np.minimum(lengths, most), own)
        self.width = max(1, int(longest.max(initial=0)))

    def padded(
        self, rows: np.ndarray, seed: list[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return nodes, targets and weights of some rows, (b, s), padded with -1, 0 and 0."""
        above, nodes, _ = _entries(self.parents, rows)
        widths = np.diff(self.child_ptr)[nodes]
        row, node = np.repeat(above, widths), _ranges(self.child_ptr[nodes], widths)
        own_row, own_node, own_count = _entries(self.counts, rows)
        n = self.counts.shape[1]  # pairs of a row and a node as one number, ascending
        at = np.searchsorted(row * n + node, own_row * n + own_node)
        target, weight = np.zeros(len(node), np.float32), np.ones(len(node), np.float32)
        target[at] = 1
        if self.count_weights:
            weight[at] = own_count
        counts = np.bincount(row, minlength=len(rows))
        if counts.max(initial=0) > self.most:
            kept = self._some(row, target, np.random.default_rng(seed))
            row, node, target, weight = row[kept], node[kept], target[kept], weight[kept]
            counts = np.bincount(row, minlength=len(rows))
        weight /= self.width
        inside = np.arange(max(1, int(counts.max(initial=0)))) < counts[:, None]
        out = []
        for array, empty in ((node.astype(np.int32), -1), (target, 0), (weight, 0)):
            wide = np.full(inside.shape, empty, array.dtype)
            wide[inside] = array
            out.append(wide)
        return out[0], out[1], out[2]

    def _some(self, row: np.ndarray, target: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return which entries to keep, ascending: those that rows have, and others at random."""
        order = np.lexsort((rng.random(len(row)) - 2 * target, row))
        begin = np.searchsorted(row, row)  # of the row's entries; they are as many in ``order``
        place = np.arange(len(row)) - begin
        return np.sort(order[(place < self.most) | (target[order] == 1)])


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


def _entries(matrix: sp.csr_matrix, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return place among ``rows``, column and value of their entries, row by row."""
    counts = np.diff(matrix.indptr)[rows]
    at = _ranges(matrix.indptr[:-1][rows], counts)
    row = np.repeat(np.arange(len(rows), dtype=np.int64), counts)
    return row, matrix.indices[at], matrix.data[at]


def _ranges(begins: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return begin, begin + 1, … of every range, one after the other."""
    ends = np.cumsum(widths)
    return np.repeat(begins - (ends - widths), widths) + np.arange(
        int(ends[-1]) if len(ends) else 0
    )
