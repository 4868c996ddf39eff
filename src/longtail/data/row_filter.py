"""``RowFilter``: which rows were seen, as a compact set of 64-bit fingerprints.

A fingerprint is cut into a bucket (its high 32 bits, scaled to the number of buckets) and a
remainder (its low 16 bits). Kept are the remainders, sorted by bucket, and how many each bucket
holds:

    counts       2  0  1  …           uint16, one per bucket, 16 rows on average
    remainders   7 901  44  …         uint16, one per distinct row

A row is said to be there if its bucket holds its remainder. One that was kept always is; another
one is with probability load / 65,536, where load is the mean number of rows in a bucket: about 1 in
4,096. That costs 2.1 bytes per row. Above ``MOST`` rows only every 2nd, 4th, … fingerprint is kept,
chosen by its own bits, so that size is bounded by 36 MB and what is asked about the others is known
to be unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from longtail.exceptions import ModelFormatError

__all__ = ["Overlap", "RowFilter"]

MOST = 1 << 24  # rows that are kept
_LOAD = 16  # rows per bucket
_CHANCE = 1e-3  # hits that chance explains with at least this probability are not reported


@dataclass(frozen=True)
class Overlap:
    """How many rows of a test set are in a filter.

    ``hits`` (n,): rows that are said to be there; ``n_asked``: rows that could be asked about, one
    in ``step`` of those that have a fingerprint; ``error``: probability that a row is said to be
    there although it is not.
    """

    hits: np.ndarray
    n_asked: int
    step: int
    error: float

    @property
    def n_rows(self) -> int:
        """Rows of the test set that are in the filter; 0 where the error explains the hits."""
        found, by_chance = int(self.hits.sum()), self.n_asked * self.error
        if _tail(found, by_chance) >= _CHANCE:
            return 0
        known = (found - by_chance) / (1 - self.error)  # of the others, a share ``error`` is found
        return min(len(self.hits), round(known * self.step))


@dataclass(frozen=True)
class RowFilter:
    """A set of row fingerprints that answers whether a row is in it, with rare false alarms.

    ``remainders`` (m,) uint16; ``counts`` (n_buckets,) uint16; ``step``: one fingerprint in so many
    is kept. Read-only; the same rows give the same arrays, in any order.

    >>> from longtail.data.fingerprints import text_fingerprints
    >>> seen = RowFilter.of(text_fingerprints(["paper jam", "no wifi"]))
    >>> seen.overlap(text_fingerprints(["no wifi", "cannot log in"])).hits
    array([ True, False])
    """

    remainders: np.ndarray
    counts: np.ndarray
    step: int = 1

    @classmethod
    def of(cls, keys: np.ndarray) -> RowFilter:
        """Return the filter of these fingerprints (n,) uint64."""
        step = 1
        while len(keys) > MOST * step:
            step *= 2
        kept = keys[_sampled(keys, step)]
        n_buckets = max(1, -(-len(kept) // _LOAD))
        return cls._packed(_split(kept, n_buckets), n_buckets, step)

    @classmethod
    def _packed(cls, cut: np.ndarray, n_buckets: int, step: int) -> RowFilter:
        cut = np.sort(cut)
        cut = cut[np.diff(cut, prepend=~cut[:1]) != 0]  # each once
        counts = np.bincount((cut >> np.uint64(16)).astype(np.int64), minlength=n_buckets)
        if counts.max(initial=0) > np.iinfo(np.uint16).max:
            raise ValueError("too many rows were added to this filter: make it anew")
        return cls((cut & np.uint64(0xFFFF)).astype(np.uint16), counts.astype(np.uint16), step)

    def with_rows(self, keys: np.ndarray) -> RowFilter:
        """Return the filter of these fingerprints too; its error grows with its load."""
        buckets = np.repeat(np.arange(len(self.counts), dtype=np.uint64), self.counts)
        own = (buckets << np.uint64(16)) | self.remainders.astype(np.uint64)
        new = _split(keys[_sampled(keys, self.step)], len(self.counts))
        return self._packed(np.concatenate([own, new]), len(self.counts), self.step)

    @property
    def error(self) -> float:
        """Probability that a row is said to be here although it is not."""
        return len(self.remainders) / len(self.counts) / 2**16

    def overlap(self, keys: np.ndarray, known: np.ndarray | None = None) -> Overlap:
        """Return which of these rows are here; ``known`` (n,): rows that have a fingerprint."""
        asked = _sampled(keys, self.step)
        if known is not None:
            asked &= known
        cut = _split(keys[asked], len(self.counts))
        bucket = (cut >> np.uint64(16)).astype(np.int64)
        remainder = (cut & np.uint64(0xFFFF)).astype(np.uint16)
        ends = np.cumsum(self.counts, dtype=np.int64)
        size = self.counts[bucket].astype(np.int64)
        place = ends[bucket] - size
        found = np.zeros(len(cut), bool)
        for i in range(int(size.max(initial=0))):
            inside = np.flatnonzero(i < size)
            found[inside] |= self.remainders[place[inside] + i] == remainder[inside]
        hits = np.zeros(len(keys), bool)
        hits[asked] = found
        return Overlap(hits, int(asked.sum()), self.step, self.error)

    def check(self) -> RowFilter:
        """Raise ``ModelFormatError`` if the arrays do not belong together."""
        whole = int(self.counts.sum(dtype=np.int64))
        if not len(self.counts) or whole != len(self.remainders) or self.step < 1:
            raise ModelFormatError("the fingerprint of the training rows is damaged")
        return self


def _sampled(keys: np.ndarray, step: int) -> np.ndarray:
    """Return keys that a filter of this step keeps, by bits that neither bucket nor remainder
    use.
    """
    bits = (keys >> np.uint64(16)) & np.uint64(0xFFFF)
    sampled: np.ndarray = bits % np.uint64(step) == 0
    return sampled


def _split(keys: np.ndarray, n_buckets: int) -> np.ndarray:
    """Return bucket and remainder of each key, as bucket * 2^16 + remainder."""
    bucket = ((keys >> np.uint64(32)) * np.uint64(n_buckets)) >> np.uint64(32)
    cut: np.ndarray = (bucket << np.uint64(16)) | (keys & np.uint64(0xFFFF))
    return cut


def _tail(found: int, mean: float) -> float:
    """Return the probability that a Poisson variable of this mean reaches ``found``."""
    if not found:
        return 1.0
    if mean <= 0 or found > mean + 10 * math.sqrt(mean) + 10:
        return 0.0
    below = (i * math.log(mean) - mean - math.lgamma(i + 1) for i in range(found))
    return 1.0 - math.fsum(map(math.exp, below))
