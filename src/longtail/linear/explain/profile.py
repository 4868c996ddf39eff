"""``LabelProfile``: what a linear model has learned about one label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.linear.explain.node_weights import ChunkEntries, chunks_of_parent, node_weights
from longtail.linear.search.layer import Layer

__all__ = ["LabelProfile", "by_weight", "siblings_by_cosine"]


@dataclass(frozen=True)
class LabelProfile:
    """A label's weights and its nearest labels.

    ``features`` and ``weights`` (m,): of the label's own classifier, largest weight first;
    ``groups``: the same pair for each node above it, root first (what its group looks like);
    ``nearest`` and ``similarities``: other labels by the cosine of their weights, best first.
    """

    label: int
    label_name: str | None
    features: np.ndarray
    weights: np.ndarray
    bias: float
    groups: tuple[tuple[np.ndarray, np.ndarray], ...]
    nearest: np.ndarray
    similarities: np.ndarray
    nearest_names: list[str] | None = None
    feature_names: Sequence[str] | None = None

    def _name(self, feature: int) -> Any:
        return int(feature) if self.feature_names is None else self.feature_names[int(feature)]

    def strongest(self, n: int = 10) -> list[tuple[Any, float]]:
        """Return the n features that speak most for the label, as (feature, weight)."""
        return self._pairs(self.features, self.weights, n)

    def weakest(self, n: int = 10) -> list[tuple[Any, float]]:
        """Return the n features that speak most against it."""
        return self._pairs(self.features[::-1], -self.weights[::-1], n, sign=-1)

    def _pairs(
        self, features: np.ndarray, weights: np.ndarray, n: int, sign: int = 1
    ) -> list[tuple[Any, float]]:
        n = int(min(n, (weights > 0).sum()))
        return [(self._name(features[i]), sign * float(weights[i])) for i in range(n)]

    def neighbours(self) -> list[tuple[Any, float]]:
        """Return the nearest labels as (label, cosine); names where they are known."""
        labels: Sequence[Any] = self.nearest_names or self.nearest.tolist()
        return list(zip(labels, self.similarities.tolist(), strict=True))

    def __str__(self) -> str:
        name = f"label {self.label}" + (f" ({self.label_name})" if self.label_name else "")

        def line(title: str, pairs: Sequence[tuple[Any, float]]) -> str:
            return f"  {title:<10} " + (", ".join(f"{a} {b:+.3f}" for a, b in pairs) or "nothing")

        lines = [
            f"{name}: {len(self.features)} weights, bias {self.bias:+.3f}",
            line("for", self.strongest()),
            line("against", self.weakest()),
        ]
        for t, (features, weights) in enumerate(self.groups):
            lines.append(line(f"group {t + 1}", self._pairs(features, weights, 10)))
        lines.append(line("nearest", self.neighbours()))
        return "\n".join(lines)


def by_weight(layer: Layer, node: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return features and weights of a node, largest weight first, and its bias."""
    features, weights, bias = node_weights(layer, node)
    order = np.argsort(-weights, kind="stable")
    return features[order], weights[order], bias


def siblings_by_cosine(
    layer: Layer, node: int, n_features: int, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the n siblings with the most similar weights (without biases) and their cosines.

    Only siblings compare: classifiers of another parent were trained on other rows. Siblings that
    share no feature with the node are left out.
    """
    features, weights, _ = node_weights(layer, node)
    query = np.zeros(n_features)
    query[features] = weights
    nodes, cosines = [], []
    length = float(np.linalg.norm(weights))
    for chunk in chunks_of_parent(layer, node):
        part = ChunkEntries.read(layer, chunk)
        width = part.last - part.first
        products = np.bincount(part.child, part.value * query[part.feature], minlength=width)
        squares = np.bincount(part.child, np.square(part.value, dtype=np.float64), minlength=width)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.nan_to_num(products / (np.sqrt(squares) * length))
        nodes.append(np.arange(part.first, part.last))
        cosines.append(cosine)
    every, cosine = np.concatenate(nodes), np.concatenate(cosines)
    keep = (every != node) & (cosine != 0)
    every, cosine = every[keep], cosine[keep]
    order = np.argsort(-cosine, kind="stable")[:n]
    return every[order], cosine[order]
