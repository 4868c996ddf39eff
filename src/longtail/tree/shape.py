"""The shape of a tree before anything is clustered: level sizes, child ranges, and where to cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from longtail._validation import as_k

__all__ = ["TreeShape", "balanced_shape", "default_level_sizes", "default_shape", "leaf_offsets"]


@dataclass
class TreeShape:
    """Who is whose child by number, and the splits that bring labels into that order.

    ``child_ptr``: per level, (K_{t-1} + 1) offsets into its nodes. ``splits``: (S, 3) rows
    ``begin, cut, end`` into the order of the labels, in rounds ``round_ptr``: carrying them out
    round by round sorts the labels into the clusters of the last level but one.
    """

    child_ptr: list[np.ndarray]
    splits: np.ndarray
    round_ptr: np.ndarray


def default_level_sizes(
    n_labels: int, *, leaf: int = 100, branching: int = 16, min_codes: int | None = None
) -> list[int]:
    """Return nodes per level, from just below the root to the labels, of the tree of XR-Linear.

    Labels are halved ``D = max(1, ceil(log2(n_labels / leaf)))`` times into ``2**D`` clusters;
    these are grouped by ``branching`` consecutive ones until at most ``min_codes`` (default:
    ``branching``) remain. No more than ``leaf`` labels: a single level, the labels themselves. A
    cluster level that would hold one label per cluster (``leaf=1``) is left out.

    Parameters
    ----------
    n_labels : int
        Number of labels, L.
    leaf : int, default=100
        Labels per cluster, about.
    branching : int, default=16
        Nodes that are grouped into one.
    min_codes : int, default=None
        Most nodes of the first level; None is ``branching``.

    >>> default_level_sizes(30_938)
    [2, 32, 512, 30938]
    >>> default_level_sizes(30_938, branching=32)
    [16, 512, 30938]
    """
    n_labels, leaf = as_k(n_labels, "n_labels"), as_k(leaf, "leaf")
    branching = as_k(branching, "branching")
    if branching < 2:
        raise ValueError(f"branching must be at least 2, got {branching}")
    top = branching if min_codes is None else as_k(min_codes, "min_codes")
    sizes = [n_labels]
    if leaf >= n_labels:
        return sizes
    # The bit length of ceil(a / b) - 1 is ceil(log2(a / b)).
    n_nodes = min(1 << (_ceil_div(n_labels, leaf) - 1).bit_length(), n_labels)
    if n_nodes < n_labels:
        sizes.insert(0, n_nodes)
    while n_nodes > top:
        n_nodes = _ceil_div(n_nodes, branching)
        sizes.insert(0, n_nodes)
    return sizes if sizes[0] > 1 else sizes[1:]


def default_shape(level_sizes: Sequence[int], branching: int) -> TreeShape:
    """Return the tree with the sizes of ``default_level_sizes``.

    Halving alone makes the last clusters, and every level above groups ``branching`` consecutive
    nodes. Where the last clusters are no power of two (``leaf=1``), grouping would join what an
    early split parted; such a tree is cut level by level instead.
    """
    *clusters, n_labels = level_sizes
    if clusters and clusters[-1] & (clusters[-1] - 1):
        return balanced_shape(level_sizes)
    shape = balanced_shape([*clusters[-1:], n_labels])
    grouped = [
        np.minimum(np.arange(above + 1, dtype=np.int64) * branching, below)
        for above, below in pairwise(clusters)
    ]
    if grouped:
        root = np.array([0, clusters[0]], dtype=np.int64)
        shape.child_ptr = [root, *grouped, shape.child_ptr[-1]]
    return shape


def balanced_shape(level_sizes: Sequence[int]) -> TreeShape:
    """Return the tree with any ascending sizes ``[K_0, ..., n_labels]``: last clusters whose
    numbers of labels differ by at most one, and on every level numbers of children that do.

    Nodes of a level are found by splitting in two, at the middle node, until single nodes remain;
    labels are shared out in proportion to the last clusters on either side.
    """
    sizes = [1, *level_sizes]
    n_labels = sizes[-1]
    child_ptr = [
        np.arange(above + 1, dtype=np.int64) * below // above for above, below in pairwise(sizes)
    ]
    cuts = np.array([0, n_labels], dtype=np.int64)  # label positions of the nodes so far
    rounds: list[np.ndarray] = []
    for level in range(len(level_sizes) - 1):
        cuts = _split_level(child_ptr, level, cuts, rounds)
    if len(level_sizes) > 1:
        child_ptr[-1] = cuts
    round_ptr = np.concatenate([[0], np.cumsum([len(r) for r in rounds])]).astype(np.int64)
    splits = np.concatenate(rounds) if rounds else np.empty((0, 3), dtype=np.int64)
    return TreeShape(child_ptr, splits, round_ptr)


def _split_level(
    child_ptr: list[np.ndarray], level: int, cuts: np.ndarray, rounds: list[np.ndarray]
) -> np.ndarray:
    """Return the label positions of the nodes of ``level`` from those of the level above; adds to
    rounds.
    """
    clusters = np.arange(len(child_ptr[level + 1]), dtype=np.int64)  # first last-cluster of a node
    for ptr in child_ptr[level + 1 : -1]:
        clusters = ptr[clusters]
    nodes = child_ptr[level]  # boundaries of ranges of nodes, all to be halved down to single nodes
    while True:
        begin, end = nodes[:-1], nodes[1:]
        wide = np.flatnonzero(end - begin > 1)
        if not len(wide):
            return cuts
        middle = (begin[wide] + end[wide]) // 2
        left = clusters[middle] - clusters[begin[wide]]
        width = clusters[end[wide]] - clusters[begin[wide]]
        cut = cuts[wide] + (cuts[wide + 1] - cuts[wide]) * left // width
        rounds.append(np.stack([cuts[wide], cut, cuts[wide + 1]], axis=1))
        nodes = np.insert(nodes, wide + 1, middle)
        cuts = np.insert(cuts, wide + 1, cut)


def leaf_offsets(child_ptr: Sequence[np.ndarray], level: int) -> np.ndarray:
    """Return the (K_level + 1) positions on the last level where the labels below each node begin
    and end.
    """
    offsets = np.arange(child_ptr[level][-1] + 1, dtype=np.int64)
    for ptr in child_ptr[level + 1 :]:
        offsets = ptr[offsets]
    return offsets


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)
