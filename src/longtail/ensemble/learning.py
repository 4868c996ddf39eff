"""How the rule "learned" is learned: no part answers a row that it was trained on."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_k, as_labels, check_same_rows
from longtail.answers.topk import TopK
from longtail.ensemble.learned_fusion import Fusion
from longtail.ensemble.part import Part
from longtail.ensemble.part_rows import Members, PartRows, Vectorizers

__all__ = ["Learned", "Learning", "as_validation", "n_trainings"]

log = logging.getLogger(__name__)

_FEW = 5000  # rows up to which a tenth is too few to learn from
_FOLDS = 5


def n_trainings(n_rows: int) -> float:
    """Return how many trainings on all rows learning the rule amounts to, if rows are held out."""
    return 1 + (_FOLDS - 1 if n_rows <= _FEW else 0.9)


class Learned(NamedTuple):
    """A fusion, and what it was learned from: answers of the parts to held-out rows, the labels of
    these, the training rows of every label, and whether the rows were held out of them.
    """

    fusion: Fusion
    tops: Sequence[TopK]
    Y: sp.csr_matrix
    counts: np.ndarray
    held_out: bool

    def without(self, part: int, n_jobs: Any) -> Fusion:
        """Learn the fusion of the other parts."""
        others = [top for i, top in enumerate(self.tops) if i != part]
        return Fusion.fit(others, self.Y, self.counts, held_out=self.held_out, n_jobs=n_jobs)


@dataclass(frozen=True)
class Learning:
    """Parts, and the rows to fit them on; arguments as in ``Members.fit``."""

    parts: Sequence[Part]
    rows: PartRows
    Y: sp.csr_matrix
    labels: PartRows | None = None
    label_texts: Any = None
    n_label_rows: int = 0
    checkpoint: str | os.PathLike[str] | None = None

    def counts(self) -> np.ndarray:
        """Return the training rows of every label, (L,)."""
        own = self.Y[: self.Y.shape[0] - self.n_label_rows]
        return np.bincount(own.indices, minlength=own.shape[1])

    def members(self) -> Members:
        """Fit every part on all rows."""
        return self._on(self.rows, self.Y, None)

    def validated(
        self, X: Any, Y: sp.csr_matrix, vectorizers: Vectorizers, candidates: int, n_jobs: Any
    ) -> tuple[Members, Learned]:
        """Fit every part on all rows, and the fusion on other ones."""
        members = self.members()
        rows = PartRows.to_answer(self.parts, members.fitted, X, vectorizers)
        tops = members.answers(rows, candidates)
        return members, self._fusion(tops, Y, n_jobs, held_out=False)

    def held_out(
        self,
        *,
        share: float,
        folds: int | None,
        refit: bool,
        seed: int,
        candidates: int,
        n_jobs: Any,
    ) -> tuple[Members, Learned]:
        """Fit the fusion on rows that are held out of the training, and every part again on all."""
        n = self.rows.n - self.n_label_rows
        if folds is None and n <= _FEW and refit and n > 1:
            folds = min(_FOLDS, n)
        order = np.random.default_rng([seed, 40]).permutation(n)
        if folds is not None:
            return self._cross_fitted(order, as_k(folds, "folds"), candidates, n_jobs)
        if not 0 < share < 1:
            raise ValueError(f"held_out must lie between 0 and 1, got {share!r}")
        size = round(n * share)
        if not 0 < size < n:
            return self.members(), self._blind(candidates, n_jobs)
        held = np.sort(order[:size])
        log.info("fusion: from answers to %s rows of models fitted without them", f"{size:,}")
        members = self._without(held, "held-out")
        fusion = self._fusion(members.answers(self.rows[held], candidates), self.Y[held], n_jobs)
        return (self.members() if refit else members), fusion

    def _cross_fitted(
        self, order: np.ndarray, folds: int, candidates: int, n_jobs: Any
    ) -> tuple[Members, Learned]:
        n = len(order)
        if not 2 <= folds <= n:
            raise ValueError(f"folds must lie between 2 and the number of rows, {n}, got {folds}")
        log.info("fusion: from answers of %d trainings, each without a part of the rows", folds)
        shape = (n, candidates)
        ids = [np.full(shape, -1, np.int32) for _ in self.parts]
        scores = [np.full(shape, -np.inf, np.float32) for _ in self.parts]
        for f in range(folds):
            held = np.sort(order[f::folds])
            tops = self._without(held, f"fold{f}").answers(self.rows[held], candidates)
            for part, top in enumerate(tops):
                ids[part][held], scores[part][held] = top.indices, top.scores
        tops = [TopK._trusted(*pair, self.Y.shape[1]) for pair in zip(ids, scores, strict=True)]
        return self.members(), self._fusion(tops, self.Y[:n], n_jobs)

    def _blind(self, candidates: int, n_jobs: Any) -> Learned:
        """Return the fusion of too few rows to hold any out: nothing was learned."""
        tops = [TopK.nothing(0, candidates, self.Y.shape[1])] * len(self.parts)
        return self._fusion(tops, self.Y[:0], n_jobs)

    def _fusion(
        self, tops: Sequence[TopK], Y: sp.csr_matrix, n_jobs: Any, *, held_out: bool = True
    ) -> Learned:
        counts = self.counts()
        fusion = Fusion.fit(tops, Y, counts, held_out=held_out, n_jobs=n_jobs)
        return Learned(fusion, tops, Y, counts, held_out)

    def _without(self, held: np.ndarray, folder: str) -> Members:
        rest = np.ones(self.rows.n, bool)
        rest[held] = False
        return self._on(self.rows[rest], self.Y[rest], folder)

    def _on(self, rows: PartRows, Y: sp.csr_matrix, folder: str | None) -> Members:
        where = self.checkpoint
        if where is not None and folder is not None:
            where = Path(where) / folder
        return Members.fit(
            self.parts,
            rows,
            Y,
            labels=self.labels,
            label_texts=self.label_texts,
            n_label_rows=self.n_label_rows,
            checkpoint=where,
        )


def as_validation(
    validation: Any, n_labels: int, as_rows: Callable[[Any], Any]
) -> tuple[Any, sp.csr_matrix]:
    """Return validation rows and their labels in canonical form."""
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        raise TypeError("validation must be a pair of rows and their labels")
    X = as_rows(validation[0])
    Y = as_labels(validation[1], n_labels=n_labels, name="the labels of validation")
    check_same_rows(X.shape[0], Y.shape[0], "validation", "its labels")
    return X, Y
