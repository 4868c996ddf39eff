"""A tree that someone else made, in any of three forms, turned into levels of consecutive children.

Labels may sit at different depths, and a label may be a category of others (as in ICD or MeSH). All
labels are brought to the last level: a label that ends early is carried down as an only child, and
a label with children becomes a node that holds itself beside them.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["MAX_DEPTH", "levels_of_parents", "parents_of_hierarchy", "parents_of_levels"]

MAX_DEPTH = 100  # every level holds every label at least once below it: depth is memory


def parents_of_hierarchy(hierarchy: Any, n_labels: int) -> np.ndarray:
    """Return the parent of every node, int64: labels are nodes 0 .. L - 1, -1 stands for the root.

    Accepts a parent array (one-dimensional, whole numbers, at least L long), nested groups of label
    ids (``[[0, 1], [2, [3, 4]]]``), or the chain of indicator matrices of a cluster tree: SciPy
    sparse, (K_t, K_{t-1}), one entry a row, the last one with a row per label.
    """
    if isinstance(hierarchy, (list, tuple)) and hierarchy:
        if all(sp.issparse(item) for item in hierarchy):
            return _parents_of_chain(hierarchy, n_labels)
        if not all(isinstance(item, numbers.Integral) for item in hierarchy):
            return _parents_of_groups(hierarchy, n_labels)
    parents = np.asarray(hierarchy)
    if parents.ndim != 1 or parents.dtype.kind not in "iu":
        raise TypeError(
            "hierarchy must be a parent array (whole numbers, -1 for the root), nested lists of "
            f"label ids, or a list of sparse matrices, got {type(hierarchy).__name__}"
        )
    parents = parents.astype(np.int64)
    if len(parents) < n_labels:
        raise ValueError(
            f"the parent array has {len(parents)} nodes but there are {n_labels} labels: "
            "the first nodes are the labels, in order"
        )
    wrong = np.flatnonzero((parents < -1) | (parents >= len(parents)))
    if len(wrong):
        raise ValueError(
            f"node {wrong[0]} has parent {parents[wrong[0]]}: parents are nodes "
            f"0 to {len(parents) - 1}, or -1 for the root"
        )
    return parents


def levels_of_parents(parents: np.ndarray, n_labels: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return ``(child_ptr, label_of_leaf)``. Nodes without labels vanish; a cycle is refused."""
    parents = _drop_barren(_split_category_labels(parents, n_labels), n_labels)
    root = len(parents)
    parents = np.where(parents == -1, root, parents)
    children = np.argsort(parents, kind="stable")
    children = children[parents[children] >= 0]  # -2 marks what was dropped
    first = np.searchsorted(parents[children], np.arange(root + 2))
    child_ptr: list[np.ndarray] = []
    nodes = np.array([root])
    while (nodes >= n_labels).any():
        if len(child_ptr) == MAX_DEPTH:
            raise ValueError(f"the hierarchy is deeper than {MAX_DEPTH} levels")
        inner = nodes >= n_labels
        count = np.where(inner, first[np.minimum(nodes + 1, root + 1)] - first[nodes], 1)
        ptr = np.concatenate([[0], np.cumsum(count)])
        below = np.repeat(nodes, count)  # a label is its own only child
        offset = np.arange(ptr[-1]) - np.repeat(ptr[:-1], count)
        moving = below >= n_labels
        below[moving] = children[first[below[moving]] + offset[moving]]
        child_ptr.append(ptr.astype(np.int64))
        nodes = below
    if len(nodes) != n_labels:
        lost = np.setdiff1d(np.arange(n_labels), nodes)
        raise ValueError(
            f"label {lost[0]} does not lead to the root: its parents go round in a circle"
        )
    while len(child_ptr) > 1 and child_ptr[0][-1] == 1:  # an only child of the root is the root
        del child_ptr[0]
    return child_ptr, nodes.astype(np.int32)


def parents_of_levels(child_ptr: Sequence[np.ndarray], label_of_leaf: np.ndarray) -> np.ndarray:
    """Return the parent array of a finished tree: the inverse of ``levels_of_parents``."""
    n_labels = len(label_of_leaf)
    sizes = [len(ptr) - 1 for ptr in child_ptr[1:]]  # of the inner levels
    start = n_labels + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    parents = np.full(start[-1], -1, dtype=np.int64)
    for level, ptr in enumerate(child_ptr[1:]):
        owner = np.repeat(np.arange(len(ptr) - 1) + start[level], np.diff(ptr))
        last = level + 2 == len(child_ptr)
        parents[label_of_leaf if last else start[level + 1] + np.arange(len(owner))] = owner
    return parents


def _split_category_labels(parents: np.ndarray, n_labels: int) -> np.ndarray:
    """Give every label that has children a new node in its place, which holds the label too."""
    category = np.intersect1d(parents, np.arange(n_labels))
    if not len(category):
        return parents
    stand_in = np.arange(len(parents) + 1)
    stand_in[category] = len(parents) + np.arange(len(category))
    stand_in[-1] = -1
    moved = stand_in[np.concatenate([parents, parents[category]])]
    moved[category] = stand_in[category]
    return np.asarray(moved, dtype=np.int64)


def _drop_barren(parents: np.ndarray, n_labels: int) -> np.ndarray:
    """Mark with -2 the inner nodes that no label lies below."""
    parents = parents.copy()
    n_children = np.bincount(parents[parents >= 0], minlength=len(parents))
    barren = np.flatnonzero(n_children[n_labels:] == 0) + n_labels
    while len(barren):
        above = parents[barren]
        parents[barren] = -2
        above = above[above >= 0]
        np.subtract.at(n_children, above, 1)
        barren = np.unique(above[n_children[above] == 0])
    return parents


def _parents_of_groups(groups: Sequence[Any], n_labels: int) -> np.ndarray:
    parents = np.full(n_labels, -2, dtype=np.int64)
    inner: list[int] = []
    waiting: list[tuple[Any, int]] = [(item, -1) for item in reversed(groups)]
    while waiting:
        item, parent = waiting.pop()
        if isinstance(item, numbers.Integral) and not isinstance(item, bool):
            label = int(item)
            if not 0 <= label < n_labels:
                raise ValueError(f"hierarchy holds label {label}: labels are 0 to {n_labels - 1}")
            if parents[label] != -2:
                raise ValueError(f"hierarchy holds label {label} twice: a label has one place")
            parents[label] = parent
        elif isinstance(item, (list, tuple, np.ndarray, range, set, frozenset)):
            node = n_labels + len(inner)
            inner.append(parent)
            members = item if isinstance(item, (list, tuple, range)) else sorted(item)
            waiting.extend((member, node) for member in reversed(members))
        else:
            raise TypeError(f"hierarchy must hold label ids and lists of them, got {item!r}")
    missing = np.flatnonzero(parents == -2)
    if len(missing):
        raise ValueError(f"hierarchy leaves out {len(missing)} labels, the first is {missing[0]}")
    return np.concatenate([parents, np.array(inner, dtype=np.int64)])


def _parents_of_chain(chain: Sequence[Any], n_labels: int) -> np.ndarray:
    matrices = [sp.csr_matrix(matrix) for matrix in chain]
    if matrices[-1].shape[0] != n_labels:
        raise ValueError(
            f"the last matrix of the chain has {matrices[-1].shape[0]} rows, expected {n_labels}"
        )
    parents: list[np.ndarray] = []
    start = n_labels  # first node of the level above
    for t in reversed(range(len(matrices))):
        matrix = matrices[t]
        if (np.diff(matrix.indptr) != 1).any():
            raise ValueError(f"matrix {t} of the chain must have exactly one entry in every row")
        if t and matrices[t - 1].shape[0] != matrix.shape[1]:
            raise ValueError(
                f"matrix {t} of the chain has {matrix.shape[1]} columns, but the one above it has "
                f"{matrices[t - 1].shape[0]} rows"
            )
        parents.append(matrix.indices.astype(np.int64) + start)
        start += matrix.shape[1]
    parents.append(np.full(matrices[0].shape[1], -1, dtype=np.int64))  # below the root
    return np.concatenate(parents)
