"""Counts of every threshold at once: what is named when a label's scores are cut after each entry.

Entries are sorted by label and descending score; after the i-th entry of its label, ``t`` and ``q``
count the true and all entries so far. A cut is possible only where the score changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["Prefixes"]


@dataclass(frozen=True)
class Prefixes:
    """Sorted entries: where each stood (``order``), ``label``, ``score`` and true value ``y``."""

    order: np.ndarray
    label: np.ndarray
    score: np.ndarray
    y: np.ndarray

    @classmethod
    def of(cls, label: np.ndarray | None, score: np.ndarray, y: np.ndarray) -> Prefixes:
        """Sort entries, given by label (None: the same for all), score and true value, (m,)."""
        if label is None:
            label, order = np.zeros(len(score), np.int32), np.argsort(-score, kind="stable")
        else:
            order = np.lexsort((-score, label))
        return cls(
            order, label[order], score[order].astype(np.float64), y[order].astype(np.float64)
        )

    @cached_property
    def first(self) -> np.ndarray:
        """Where the entries of every label that occurs begin."""
        return np.flatnonzero(np.diff(self.label, prepend=-1))

    @cached_property
    def length(self) -> np.ndarray:
        """How many entries every label that occurs has."""
        return np.diff(np.append(self.first, len(self.label)))

    @cached_property
    def t(self) -> np.ndarray:
        """The running sum of the true values of a label."""
        total = np.cumsum(self.y)
        return np.asarray(total - np.repeat((total - self.y)[self.first], self.length))

    @cached_property
    def q(self) -> np.ndarray:
        """The running number of entries of a label."""
        number = np.arange(1, len(self.label) + 1)
        return np.asarray(number - np.repeat(self.first, self.length), np.float64)

    @cached_property
    def last(self) -> np.ndarray:
        """Whether a cut is possible after an entry."""
        changes = (self.label[1:] != self.label[:-1]) | (self.score[1:] != self.score[:-1])
        return np.append(changes, True)

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
