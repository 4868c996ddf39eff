"""The weights of single nodes, read out of a search layer, and the path from the root to a leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longtail.linear.search.layer import Layer

__all__ = ["ChunkEntries", "chunk_of", "chunks_of_parent", "node_weights", "path_to"]


@dataclass(frozen=True)
class ChunkEntries:
    """Weights of the nodes ``first`` to ``last`` - 1 of a level: three arrays side by side."""

    first: int
    last: int
    feature: np.ndarray
    child: np.ndarray  # counted from ``first``
    value: np.ndarray

    @classmethod
    def read(cls, layer: Layer, chunk: int) -> ChunkEntries:
        first, last = layer.arrays["chunk_children"][chunk : chunk + 2]
        return cls(int(first), int(last), *layer.chunk_entries(chunk))


def chunk_of(layer: Layer, node: int) -> int:
    """Return the chunk that holds a node of this level."""
    return int(np.searchsorted(layer.arrays["chunk_children"], node, side="right")) - 1


def chunks_of_parent(layer: Layer, node: int) -> range:
    """Return the chunks that hold a node and its siblings."""
    parent = _parent(layer, node)
    first, last = layer.arrays["parent_chunks"][parent : parent + 2]
    return range(int(first), int(last))


def path_to(layers: Sequence[Layer], leaf: int) -> list[int]:
    """Return the nodes from below the root to a leaf, one per level."""
    path = [leaf]
    for layer in reversed(layers[1:]):
        path.insert(0, _parent(layer, path[0]))
    return path


def node_weights(
    layer: Layer, node: int, features: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return features (ascending int32), their weights (float32) and the bias of one node.

    ``features`` (ascending): only of these, which is quick where they are few.
    """
    chunk = chunk_of(layer, node)
    if features is None:
        feature, child, value = layer.chunk_entries(chunk)
    else:
        feature, child, value = layer.entries_of(chunk, features)
    own = child == node - layer.arrays["chunk_children"][chunk]
    return feature[own], value[own], float(layer.arrays["bias"][node])


def _parent(layer: Layer, node: int) -> int:
    chunk = chunk_of(layer, node)
    return int(np.searchsorted(layer.arrays["parent_chunks"], chunk, side="right")) - 1
