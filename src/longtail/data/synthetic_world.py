"""The labels, topics and words behind ``make_longtail``, and the rows that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._csr import csr
from longtail._native import core
from longtail.data.dataset import Split

__all__ = ["PowerLaw", "Sizes", "World"]

COHERENCE = 0.8  # share of a row's topical labels from its own topic
TOPICAL = 0.2  # share of words from the topic's lexicon
LEXICON = 256  # words of a topic
SIGNATURE = 8  # words of a label
OFFSET = 0.001  # of the power law, as a share of L: bends the head down, as in real label sets
HEAD = 0.25  # no label on more than this share of the rows
SPREAD = 0.5  # how much the sizes of rows differ: standard deviation of their logarithm


@dataclass(frozen=True)
class Sizes:
    """What is to be made: rows, features, labels, averages per row, and the skew of the labels.

    The skew is the power law's ``exponent``, or else ``pos80``, the share of the labels that holds
    80 % of the positives.
    """

    n: int
    n_test: int
    d: int
    L: int
    labels_per_row: float
    features_per_row: float
    exponent: float | None
    pos80: float | None
    n_topics: int
    noise: float


class PowerLaw:
    """Target frequencies by rank: A (r + q)^-s between bounds, with A such that they add up."""

    def __init__(self, L: int, positives: float, most: float) -> None:
        self.L, self.positives = L, positives
        self.low = 1.0 if positives >= L else 0.0
        self.most = max(most, 2 * positives / L)
        # Sums over all ranks are taken over bins of ranks, single ones first, then ever wider.
        edges = np.unique(np.geomspace(1, L + 1, 4096).astype(np.int64))
        self.widths = np.diff(edges)
        self.ranks = edges[:-1] + (self.widths - 1) / 2

    def __call__(self, ranks: np.ndarray, exponent: float) -> np.ndarray:
        shape = (ranks + OFFSET * self.L) ** -exponent
        binned = (self.ranks + OFFSET * self.L) ** -exponent
        floor, ceiling = 0.0, self.positives / binned.min()
        for _ in range(80):
            middle = (floor + ceiling) / 2
            if np.clip(middle * binned, self.low, self.most) @ self.widths < self.positives:
                floor = middle
            else:
                ceiling = middle
        frequencies: np.ndarray = np.clip(ceiling * shape, self.low, self.most)
        return frequencies

    def exponent_for(self, pos80: float) -> float:
        """Return the exponent at which the share ``pos80`` of the labels holds 80 % of the
        positives.
        """
        floor, ceiling = 0.0, 4.0
        for _ in range(30):
            middle = (floor + ceiling) / 2
            held = np.cumsum(self(self.ranks, middle) * self.widths)
            labels = np.interp(0.8 * held[-1], held, np.cumsum(self.widths))
            if labels > pos80 * self.L:
                floor = middle
            else:
                ceiling = middle
        return ceiling


class World:
    """The labels and their topics; makes rows of them."""

    def __init__(self, sizes: Sizes, seed: int, threads: int) -> None:
        self.sizes, self.seed, self.threads = sizes, seed, threads
        self.rng = np.random.default_rng(seed)
        L, K, positives = sizes.L, sizes.n_topics, sizes.n * sizes.labels_per_row
        self.cover = positives >= L  # there is a training row for every label
        law = PowerLaw(L, positives, HEAD * sizes.n)
        exponent = sizes.exponent
        if exponent is None:
            exponent = 1.0 if sizes.pos80 is None else law.exponent_for(sizes.pos80)
        counts = law(np.arange(1.0, L + 1), exponent)
        # A label can be on each row of its topic once: what would be on many of them is general.
        G = int(np.searchsorted(-counts, -max(sizes.n / (4 * K), 20.0)))
        # Among the others, each run of K ranks deals one label to every topic.
        deal = np.argsort(self.rng.random((-(-(L - G) // K), K)), axis=1, kind="stable")
        topic_of_rank = deal.reshape(-1)[: L - G].astype(np.int32)
        id_of_rank = self.rng.permutation(L).astype(np.int32)
        by_topic = np.concatenate([np.arange(G), G + np.argsort(topic_of_rank, kind="stable")])
        self.order = id_of_rank[by_topic]
        self.topic_begin = np.full(K + 1, G, np.int64)
        self.topic_begin[1:] += np.cumsum(np.bincount(topic_of_rank, minlength=K))
        self.label_topic = self.rng.integers(0, K, L, dtype=np.int32)
        self.label_topic[id_of_rank[G:]] = topic_of_rank
        self.general = counts[:G].sum() / max(counts.sum(), 1.0)
        self.topic_share = np.bincount(topic_of_rank, counts[G:], K)
        counts[G:] -= self.cover  # the one row that each label is given
        self.cumulative = np.zeros(L + 1)  # strictly increasing: any label can be drawn
        np.cumsum(np.maximum(counts[by_topic], 1e-6), out=self.cumulative[1:])

    def rows(self, n: int, first: int, *, cover: bool) -> tuple[Any, Any]:
        """Return the word counts and labels of the rows ``first`` … ``first + n - 1``."""
        cover = cover and self.cover
        sizes, K = self.sizes, self.sizes.n_topics
        topic_rows = _apportion(n, self.topic_share, least=1 if cover else 0)
        row_topic = self.rng.permutation(np.repeat(np.arange(K, dtype=np.int32), topic_rows))
        row_rank, forced = None, 0
        if cover:
            by_topic = np.argsort(row_topic, kind="stable")
            starts = np.repeat(np.cumsum(topic_rows) - topic_rows, topic_rows)
            row_rank = np.empty(n, np.int32)
            row_rank[by_topic] = np.arange(n) - starts
            topic_labels = np.diff(self.topic_begin)
            forced = -(-(topic_labels[row_topic] - row_rank) // topic_rows[row_topic])
        y_indptr = self._offsets("labels", first, n, sizes.labels_per_row, forced, sizes.L)
        labels = np.empty(y_indptr[-1], np.int32)
        core.synthetic_labels(
            seed=self.seed,
            first_row=first,
            order=self.order,
            topic_begin=self.topic_begin,
            cumulative=self.cumulative,
            row_topic=row_topic,
            row_rank=row_rank,
            topic_rows=topic_rows.astype(np.int32),
            general=self.general,
            coherence=COHERENCE,
            indptr=y_indptr,
            labels=labels,
            n_threads=self.threads,
            progress=None,
        )
        x_indptr = self._offsets("features", first, n, sizes.features_per_row, 0, sizes.d)
        words, values = np.empty(x_indptr[-1], np.int32), np.empty(x_indptr[-1], np.float32)
        core.synthetic_features(
            seed=self.seed,
            first_row=first,
            n_features=sizes.d,
            lexicon=min(LEXICON, max(SIGNATURE, sizes.d // 4)),
            signature=SIGNATURE,
            noise=sizes.noise,
            topical=TOPICAL,
            row_topic=row_topic,
            label_topic=self.label_topic,
            label_indptr=y_indptr,
            labels=labels,
            indptr=x_indptr,
            words=words,
            values=values,
            n_threads=self.threads,
            progress=None,
        )
        return (x_indptr, words, values), (y_indptr, labels)

    def _offsets(
        self, what: str, first: int, n: int, mean: float, least: Any, most: int
    ) -> np.ndarray:
        """Return the row offsets (n + 1,) int64: sizes at random between the bounds, ``mean`` on
        average.
        """
        one = min(1, int(mean))  # no empty rows, unless the average says so
        sizes = core.synthetic_sizes(
            self.seed, what, first, n, one, most, mean, SPREAD, self.threads
        )
        least = np.maximum(least, one)
        sizes = np.maximum(sizes, least)
        # The average is met exactly: what is missing or too much is spread over rows at random.
        lacking = round(n * mean) - int(sizes.sum())
        while lacking:
            movable = np.flatnonzero(sizes < most if lacking > 0 else sizes > least)
            if not len(movable):
                break
            chosen = self.rng.permutation(movable)[: abs(lacking)]
            sizes[chosen] += 1 if lacking > 0 else -1
            lacking -= len(chosen) if lacking > 0 else -len(chosen)
        return np.concatenate([[0], np.cumsum(sizes)])

    def idf(self, counts: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the inverse document frequencies (d,) float32 of the training rows."""
        indptr, words, _ = counts
        df = np.zeros(self.sizes.d, np.int64)
        for start in range(0, len(words), 1 << 24):  # bincount makes an int64 copy
            df += np.bincount(words[start : start + (1 << 24)], minlength=self.sizes.d)
        return (1.0 + np.log(len(indptr) / (1.0 + df))).astype(np.float32)

    def weighed(self, counts: Any, labels: Any, idf: np.ndarray) -> Split:
        """Return the rows as a ``Split``; the counts are overwritten."""
        indptr, words, values = counts
        core.synthetic_weigh(indptr, words, idf, values, self.threads)
        y_indptr, y_labels = labels
        ones = np.ones(len(y_labels), np.float32)
        return Split(
            X=csr(indptr, words, values, self.sizes.d),
            Y=csr(y_indptr, y_labels, ones, self.sizes.L),
        )


def _apportion(n: int, share: np.ndarray, least: int) -> np.ndarray:
    """Whole numbers (K,) int64 close to n times ``share`` that add up to n, all at least ``least``.

    >>> _apportion(10, np.array([1.0, 1.0, 4.0]), least=1)
    array([2, 2, 6])
    """
    spare = n - least * len(share)
    exact = spare * (share / share.sum() if share.any() else np.full(len(share), 1 / len(share)))
    counts: np.ndarray = np.floor(exact).astype(np.int64)
    rest = spare - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    counts += least
    return counts
