"""Weights per label, and what they make of the nodes of a tree.

On the last level a label has its own weight. An inner node stands for many labels: a positive row
weighs there the mean of the weights of those of its labels that lie below the node, so that a row
with a rare label counts as much on the way to it as it does at the label itself; a negative row,
which has none of them, weighs the mean over all labels below the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.linear.train.level import as_weight
from longtail.tree import LabelTree

__all__ = ["LabelWeights", "node_means", "per_label", "row_means"]


@dataclass(frozen=True)
class LabelWeights:
    """What labels weigh: ``positive`` and ``negative``, each (L,) float64."""

    positive: np.ndarray
    negative: np.ndarray

    def of_level(
        self, tree: LabelTree, level: int, Y: sp.csr_matrix
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return, for the nodes of a level: weight of positives (K,), of negatives (K,), and what
        the first is multiplied with for every positive, in CSC order; None for 1.
        """
        if level + 1 == len(tree.level_sizes_):
            return self.positive[tree.label_of_leaf_], self.negative[tree.label_of_leaf_], None
        return self.of_nodes(tree.ancestors(level), tree.level_sizes_[level], Y)

    def of_nodes(
        self, nodes: np.ndarray, n_nodes: int, Y: sp.csr_matrix
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the same for inner nodes, given the node above each label."""
        negative = node_means(nodes, n_nodes, self.negative)
        if (self.positive == self.positive[0]).all():
            return np.full(n_nodes, self.positive[0]), negative, None
        rows = row_means(Y, nodes, n_nodes, self.positive)
        return np.ones(n_nodes), negative, rows.data


def per_label(weight: Any, n_labels: int, name: str) -> np.ndarray:
    """Return a weight, one number or one per label, as float64 (L,); anything else is refused."""
    if as_weight(weight, name).shape not in ((), (n_labels,)):
        raise ValueError(
            f"{name} must be a number or one per label ({n_labels}), got shape {np.shape(weight)}"
        )
    return np.broadcast_to(np.asarray(weight, np.float64), n_labels)


def row_means(
    Y: sp.csr_matrix, nodes: np.ndarray, n_nodes: int, weight: np.ndarray
) -> sp.csc_matrix:
    """Return, as CSC (n, K) float32, the mean weight of the labels that a row has below each node.

    ``nodes`` (L,): the node above each label. Means are weighted with the values in ``Y``.

    >>> Y = sp.csr_matrix([[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]])
    >>> row_means(Y, np.array([0, 0, 1]), 2, np.array([1.0, 5.0, 2.0])).toarray()
    array([[3., 2.],
           [5., 0.]], dtype=float32)
    """
    rows = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
    places, at = np.unique(rows * n_nodes + nodes[Y.indices], return_inverse=True)
    total = np.bincount(at, Y.data * weight[Y.indices], minlength=len(places))
    mean = (total / np.bincount(at, Y.data, minlength=len(places))).astype(np.float32)
    shape = (Y.shape[0], n_nodes)
    out = sp.coo_matrix((mean, (places // n_nodes, places % n_nodes)), shape=shape).tocsc()
    out.sort_indices()
    return out


def node_means(nodes: np.ndarray, n_nodes: int, weight: np.ndarray) -> np.ndarray:
    """Return the mean weight of all labels below each node (K,), which has at least one."""
    if (weight == weight[0]).all():
        return np.full(n_nodes, weight[0])
    total = np.bincount(nodes, weight, minlength=n_nodes)
    return np.asarray(total / np.bincount(nodes, minlength=n_nodes))
