"""Huffman trees: the fewest decisions per positive label, whatever the labels mean."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["huffman_parents"]


def huffman_parents(weights: Any, branching: int = 2) -> np.ndarray:
    """Return the parent array (labels first, -1 for the root) that minimises ``sum_l weights[l] *
    depth(l)``.

    The ``branching`` lightest nodes are joined, again and again; a first, smaller join makes the
    numbers come out so that all later ones, the root's included, are full. Equal weights: smaller
    label first, labels before joined nodes, so that depth grows no more than it must.

    >>> huffman_parents([4, 2, 1, 1]).tolist()
    [6, 5, 4, 4, 5, 6, -1]

    D. A. Huffman, A method for the construction of minimum-redundancy codes, Proc. IRE, 1952.
    """
    weights = np.asarray(weights, dtype=np.float64)
    n = len(weights)
    if n < 2:
        return np.full(n, -1, dtype=np.int64)
    # Joined weights only grow, so both the sorted labels and the joined nodes are queues.
    labels = np.argsort(weights, kind="stable").tolist()
    weight = weights.tolist()
    n_joins = -(-(n - 1) // (branching - 1))
    parents = [-1] * (n + n_joins)
    take = (n - 2) % (branching - 1) + 2
    next_label, next_joined = 0, n
    for node in range(n, n + n_joins):
        total = 0.0
        for _ in range(take):
            if next_joined == node or (
                next_label < n and weight[labels[next_label]] <= weight[next_joined]
            ):
                child = labels[next_label]
                next_label += 1
            else:
                child = next_joined
                next_joined += 1
            parents[child] = node
            total += weight[child]
        weight.append(total)
        take = branching
    return np.array(parents, dtype=np.int64)
