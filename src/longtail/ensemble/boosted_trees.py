"""``BoostedTrees``: gradient-boosted trees for a yes or no, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail import persist
from longtail._native import core, n_threads
from longtail.exceptions import ModelFormatError

__all__ = ["BoostedTrees"]

_MOST_EDGES = 255  # of a feature: bins are numbered in a byte
_SAMPLE = 200_000  # rows that edges are taken from
_ARRAYS = {
    "roots": np.int32,
    "feature": np.int32,
    "threshold": np.float32,
    "child": np.int32,
    "value": np.float64,
}


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Trees over features (m, d): ``score(x) = base + sum of the leaves that x falls into``.

    ``roots`` (trees,) and, for every node, ``feature`` (-1 for a leaf), ``threshold``, ``child``
    (the left one, where x[feature] <= threshold; the right one follows it) and ``value``.
    ``cpp/kernels/fusion`` draws the layout. The same rows give the same bits for any number of
    threads.

    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
    Statistics 29 (2001), with Newton steps, leaves grown best first, and histograms.

    >>> rows = np.arange(200, dtype=np.float32)[:, None]
    >>> trees = BoostedTrees.fit(rows, rows[:, 0] > 99, n_trees=20, rate=0.1)
    >>> trees.scores(np.array([[50.0], [150.0]], np.float32)).round(1)
    array([-2.5,  2.5])
    """

    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    value: np.ndarray
    base: float

    @classmethod
    def fit(
        cls,
        rows: np.ndarray,
        targets: Any,
        weights: Any = None,
        *,
        n_trees: int = 100,
        n_leaves: int = 31,
        min_rows: int = 20,
        rate: float = 0.05,
        l2: float = 1.0,
        n_jobs: int | None = None,
    ) -> BoostedTrees:
        """Fit trees to ``targets`` (m,) in [0, 1] by the binary cross-entropy.

        ``rows`` (m, d) float32, finite; ``weights`` (m,): what each row counts, 1 if None;
        ``min_rows``: fewest rows of a leaf; ``rate``: what a tree counts; ``l2``: added to the
        curvature of a leaf.
        """
        rows = np.ascontiguousarray(rows, np.float32)
        offsets, edges = _edges(rows)
        found = core.fit_boosted_trees(
            rows,
            np.ascontiguousarray(targets, np.float32),
            np.ones(len(rows), np.float32)
            if weights is None
            else np.ascontiguousarray(weights, np.float32),
            offsets,
            edges,
            n_trees=n_trees,
            n_leaves=n_leaves,
            min_rows=min_rows,
            rate=rate,
            l2=l2,
            n_threads=n_threads(n_jobs),
        )
        return cls(*found)

    @classmethod
    def none(cls) -> BoostedTrees:
        """Return no trees: the score of every row is 0."""
        return cls(**{name: np.zeros(0, kind) for name, kind in _ARRAYS.items()}, base=0.0)

    def native(self) -> tuple[Any, ...]:
        """Return the arrays in the order in which kernels take them."""
        return (*(getattr(self, name) for name in _ARRAYS), self.base)

    def scores(self, rows: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return the log-odds of rows, (m,) float64."""
        rows = np.ascontiguousarray(rows, np.float32)
        return core.boosted_scores(rows, *self.native(), n_threads(n_jobs))  # type: ignore[no-any-return]

    def put(self, state: persist.State) -> None:
        """Store the arrays under names that begin with ``trees_``."""
        for name in _ARRAYS:
            state.arrays[f"trees_{name}"] = getattr(self, name)
        state.meta["trees_base"] = self.base

    @classmethod
    def take(cls, state: persist.State, n_features: int) -> BoostedTrees:
        """Return what ``put`` stored; nodes that are none are refused."""
        roots = state.array("trees_roots", np.int32, (None,))
        feature = state.array("trees_feature", np.int32, (None,))
        n = len(feature)
        threshold, child, value = (
            state.array(f"trees_{name}", _ARRAYS[name], (n,))
            for name in ("threshold", "child", "value")
        )
        inner = np.flatnonzero(feature >= 0)
        sound = (feature >= -1).all() and (feature < n_features).all()
        sound &= (child[inner] > inner).all() and (child[inner] < n - 1).all()
        sound &= (roots >= 0).all() and (roots < n).all()
        base = state.meta.get("trees_base")
        number = isinstance(base, (int, float)) and np.isfinite(base)
        if not (sound and number and np.isfinite(value).all() and not np.isnan(threshold).any()):
            raise ModelFormatError("the trees of the fusion are damaged")
        return cls(roots, feature, threshold, child, value, float(base))  # type: ignore[arg-type]


def _edges(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return thresholds between the bins of every feature, one behind the other, and where those of
    each begin: quantiles or, of few values, the middle between two, so that a value in between that
    was never seen goes with the nearer one.
    """
    sample = rows[:: -(-len(rows) // _SAMPLE)] if len(rows) else rows
    offsets, found = [0], []
    for column in sample.T:
        values = np.unique(column)
        if len(values) > _MOST_EDGES + 1:
            at = np.linspace(0, len(column) - 1, _MOST_EDGES + 2)[1:-1].astype(np.int64)
            values = np.unique(np.sort(column)[at])
        else:
            middle = (values[:-1] + values[1:]) / 2
            values = np.where(middle < values[1:], middle, values[:-1])  # no number lies between
        found.append(values)
        offsets.append(offsets[-1] + len(values))
    return np.array(offsets, np.int64), np.concatenate([*found, np.zeros(0, np.float32)])
