"""``Fusion``: what the answers of several sources are worth together, learned on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import core, csr_args, n_threads
from longtail.answers.topk import TopK
from longtail.calibrate.isotonic import Isotonic
from longtail.ensemble.boosted_trees import BoostedTrees
from longtail.ensemble.fusion import combine
from longtail.exceptions import ModelFormatError

__all__ = ["Fusion"]

_MOST_PAIRS = 2_000_000  # that trees are grown on; of more, whole rows are left out
_FEWEST_HITS = 10  # and misses, below which nothing can be learned
_PER_SOURCE, _OVER_SOURCES = 5, 5  # features of a pair: cpp/kernels/fusion/pairs.h


@dataclass(frozen=True, eq=False)
class Fusion:
    """Curves from the scores of every source to probabilities, and boosted trees over pairs.

    Candidates of a row are the union of the labels that the sources answered. Of a pair of row and
    candidate the trees know, for every source, its probability p, p less the greatest p of the row,
    1 / rank, log rank and whether it was answered at all; over the sources how many answered it,
    the mean and the greatest p, and the mean of 1 / rank; and log(1 + training rows) of the label.
    So rare labels can listen to another source than frequent ones. A source that did not answer a
    candidate has p = 0 there and the rank behind its last.

    ``curves``: one ``Isotonic`` per source; ``log_counts`` (L,) float32; ``held_out``: how many
    rows and pairs the trees were grown on.
    """

    curves: list[Isotonic]
    trees: BoostedTrees
    log_counts: np.ndarray
    held_out: dict[str, int]

    @classmethod
    def fit(
        cls,
        tops: Sequence[TopK],
        Y: sp.csr_matrix,
        counts: np.ndarray,
        *,
        held_out: bool = False,
        n_jobs: int | None = None,
    ) -> Fusion:
        """Learn from answers (n, candidates) to rows that no source was trained on.

        ``Y`` (n, L): their labels; ``counts`` (L,): training rows of every label. ``held_out``:
        whether the rows are among these. A label of one row then says nothing: in its own row no
        source knows it, and no other row has it, so that it would seem hopeless. Such pairs are
        left out, and the label is taken for one of two rows. With fewer than ten right or ten wrong
        answers there are no trees, and the score of a pair is the mean of its probabilities.
        """
        threads = n_threads(n_jobs)
        args = csr_args(Y)
        tells = counts > 1 if held_out else np.ones(len(counts), bool)
        curves = []
        for top in tops:
            answered = (top.indices >= 0) & tells[top.indices]
            right = core.match_gains(args, np.ascontiguousarray(top.indices), threads)[answered]
            curves.append(
                Isotonic.fit(top.scores[answered], right) if len(right) else _flat_curve()
            )
        log_counts = np.log1p(counts).astype(np.float32)
        self = cls(curves, BoostedTrees.none(), log_counts, {})
        offsets, ids, features = self._pairs(tops, threads)
        if len(ids) > _MOST_PAIRS:
            n_rows = max(1, len(tops[0]) * _MOST_PAIRS // len(ids))
            rows = np.sort(np.random.default_rng(0).permutation(len(tops[0]))[:n_rows])
            tops, Y = [top[rows] for top in tops], Y[rows]
            offsets, ids, features = self._pairs(tops, threads)
        telling = tells[ids]
        features, targets = features[telling], _targets(Y, offsets, ids)[telling]
        hits = float(targets.sum())
        about = {"rows": len(tops[0]), "pairs": len(targets)}
        if min(hits, len(targets) - hits) < _FEWEST_HITS:
            return replace(self, held_out=about)
        kept, weights = _thinned(features, targets, len(tops))
        trees = BoostedTrees.fit(features[kept], targets[kept], weights, n_jobs=n_jobs)
        return replace(self, trees=trees, held_out=about)

    def top(self, tops: Sequence[TopK], k: int, n_jobs: int | None = None) -> TopK:
        """Return the k most probable candidates of each row; scores are probabilities."""
        answers = self.values(tops)
        n_labels = len(self.log_counts)
        if not len(self.trees.roots):
            likely = [TopK._trusted(ids, proba, n_labels) for ids, proba in answers]
            return combine(likely, k, n_jobs=n_jobs)
        trees = self.trees.native()
        ids, proba = (list(arrays) for arrays in zip(*answers, strict=True))
        found = core.fuse_topk(ids, proba, self.log_counts, *trees, k, n_threads(n_jobs))
        return TopK._trusted(found[0], found[1], n_labels)

    def values(self, tops: Sequence[TopK]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the ids that every source answered, and the probabilities of its scores, both
        (n, k).
        """
        out = []
        for top, curve in zip(tops, self.curves, strict=True):
            answered = top.indices >= 0
            p = curve.transform(np.where(answered, top.scores, 0))
            ids = np.ascontiguousarray(top.indices, np.int32)
            out.append((ids, np.where(answered, p, 0).astype(np.float32)))
        return out

    def _pairs(self, tops: Sequence[TopK], threads: int) -> Any:
        ids, proba = (list(arrays) for arrays in zip(*self.values(tops), strict=True))
        return core.collect_pairs(ids, proba, self.log_counts, threads)

    def for_labels(self, counts: np.ndarray) -> Fusion:
        """Return the same for other labels, with so many training rows each."""
        return replace(self, log_counts=np.log1p(counts).astype(np.float32))

    def with_labels(self, counts: np.ndarray) -> Fusion:
        """Return the same for more labels, with so many training rows each."""
        longer = np.concatenate([self.log_counts, np.log1p(counts).astype(np.float32)])
        return replace(self, log_counts=longer)

    def without_labels(self, labels: Any) -> Fusion:
        """Return the same without some labels."""
        return replace(self, log_counts=np.delete(self.log_counts, np.asarray(labels, np.int64)))

    def put(self, state: persist.State) -> None:
        """Store everything as arrays."""
        state.arrays["log_counts"] = self.log_counts
        for i, curve in enumerate(self.curves):
            for name, array in curve.arrays().items():
                state.arrays[f"source{i}_{name}"] = array
        self.trees.put(state)
        state.meta["held_out"] = self.held_out

    @classmethod
    def take(cls, state: persist.State, n_sources: int, n_labels: int) -> Fusion:
        """Return what ``put`` stored."""
        log_counts = state.array("log_counts", np.float32, (n_labels,))
        if not np.isfinite(log_counts).all():
            raise ModelFormatError("the label counts of the fusion are damaged")
        curves = [
            Isotonic.from_arrays(
                {
                    name: state.array(f"source{i}_{name}", np.float64, (None,))
                    for name in ("knots", "values")
                }
            )
            for i in range(n_sources)
        ]
        trees = BoostedTrees.take(state, _PER_SOURCE * n_sources + _OVER_SOURCES)
        held_out = state.meta.get("held_out")
        return cls(curves, trees, log_counts, held_out if isinstance(held_out, dict) else {})


def _targets(Y: sp.csr_matrix, offsets: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the values of ``Y`` at pairs of row and label, float32."""
    n_labels = Y.shape[1]
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys = rows * n_labels + ids
    own = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)) * n_labels + Y.indices
    order = np.argsort(own, kind="stable")
    place = np.searchsorted(own[order], keys)
    place[place == len(own)] = 0
    if not len(own):
        return np.zeros(len(keys), np.float32)
    found = own[order][place] == keys
    return np.where(found, Y.data[order][place], 0).astype(np.float32)


def _thinned(
    features: np.ndarray, targets: np.ndarray, n_sources: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs to learn from, and what each counts: of those that no source has among its ten
    best and that are wrong, nearly all, every fourth stands for four.
    """
    inverse_ranks = features[:, 2 : _PER_SOURCE * n_sources : _PER_SOURCE]
    plain = (inverse_ranks.max(axis=1) < 1 / 10) & (targets == 0)
    at = np.flatnonzero(plain)
    weights = np.ones(len(targets), np.float32)
    weights[at] = 0
    weights[at[::4]] = len(at) / max(len(at[::4]), 1)
    kept = np.flatnonzero(weights)
    return kept, weights[kept]


def _flat_curve() -> Isotonic:
    """Return the curve of a source that answered nothing."""
    return Isotonic(np.zeros(1), np.zeros(1))
