"""Counts of every threshold at once: what is named when a label's scores are cut after each entry.

Entries are sorted by label and descending score; after the i-th entry of its label, ``t`` and ``q``
count the true and all entries so far. A cut is possible only where the score changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Prefixes"]


@dataclass(frozen=True)
class Prefixes:
    """Sorted entries: where each stood (``order``), ``label``, ``score``, true value ``y`` and
    running counts ``t``, ``q``; ``first`` and ``length`` of every label that occurs; ``last`` says
    where a cut is possible.
    """

    order: np.ndarray
    label: np.ndarray
    score: np.ndarray
    y: np.ndarray
    t: np.ndarray
    q: np.ndarray
    first: np.ndarray
    length: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, label: np.ndarray | None, score: np.ndarray, y: np.ndarray) -> Prefixes:
        """Sort entries, given by label (None: the same for all), score and true value, (m,)."""
        if label is None:
            label, order = np.zeros(len(score), np.int32), np.argsort(-score, kind="stable")
        else:
            order = np.lexsort((-score, label))
        label, score = label[order], score[order].astype(np.float64)
        y = y[order].astype(np.float64)
        fresh = np.ones(len(label), bool)
        fresh[1:] = label[1:] != label[:-1]
        first = np.flatnonzero(fresh)
        length = np.diff(np.append(first, len(label)))
        total = np.cumsum(y)
        t = total - np.repeat((total - y)[first], length)
        q = np.arange(1, len(label) + 1) - np.repeat(first, length).astype(np.float64)
        last = np.ones(len(label), bool)
        last[:-1] = fresh[1:] | (score[1:] != score[:-1])
        return cls(order, label, score, y, t, q, first, length, last)

    def best_cut(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for every label that occurs, the position of its largest ``value`` among possible
        cuts (the earliest of equals), and that value.
        """
        value = np.where(self.last, value, -np.inf)
        best = np.maximum.reduceat(value, self.first)
        position = np.where(
            value == np.repeat(best, self.length), np.arange(len(value)), len(value)
        )
        return np.minimum.reduceat(position, self.first), best

    def below(self, position: np.ndarray) -> np.ndarray:
        """Return a threshold that names everything up to ``position`` of its label and nothing
        after: halfway to the next smaller score.
        """
        end = position + 1
        same = end < len(self.label)
        after = np.minimum(end, len(self.label) - 1)
        follows = same & (self.label[after] == self.label[position])
        return np.asarray((self.score[position] + np.where(follows, self.score[after], 0.0)) / 2)
