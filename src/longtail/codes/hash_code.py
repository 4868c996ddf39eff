"""``HashCode``: labels hashed into buckets, several times; the code of MACH."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._csr import csr
from longtail._native import core, n_threads
from longtail._validation import as_k, as_labels, as_seed
from longtail.answers.topk import TopK
from longtail.base import Estimator, unfitted
from longtail.exceptions import ModelFormatError

__all__ = ["AGGREGATIONS", "LINKS", "HashCode", "default_size"]

LINKS = {"identity": 0, "sigmoid": 1, "hinge": 2, "softmax": 3}
AGGREGATIONS = {"mean": 0, "logits": 0, "min": 1, "median": 2, "unbiased": 0}  # for the decoder
_MOST_MEDIAN = 64
_MOST_BUCKETS = np.iinfo(np.int32).max


def default_size(n_labels: int) -> tuple[int, int]:
    """Return ``(n_buckets, n_repetitions)`` where the user names none.

    Sixteen repetitions (the authors' choice) with together a quarter as many outputs as there are
    labels, but never fewer than 64 buckets each, or frequent labels crowd them: below 4,096 labels
    there is nothing to save.

    >>> default_size(22_625)
    (353, 16)
    """
    repetitions = 16
    buckets = max(n_labels // (4 * repetitions), min(64, n_labels))
    return buckets, repetitions


class HashCode(Estimator):
    """R independent hashes of the labels into B buckets (MACH; Medini et al. 2019).

    Label i lies in bucket ``h_r(i) = murmur3(i, seed_r) mod B`` of repetition r. ``encode`` tells
    which buckets hold a label of a row (a logical or: two labels of a row in one bucket make one
    positive). ``decode`` takes bucket scores (n, R, B), turns them into values v by ``link``, and
    ranks labels by

    =============  ==================================================================
    aggregation    score of label i, over the values ``v_r = v[r, h_r(i)]``
    =============  ==================================================================
    ``mean``       the mean of v_r (the paper)
    ``logits``     the sum of the raw scores, no link (the authors' code; often ranks better)
    ``min``        the minimum (count-min sketch)
    ``median``     the median
    ``unbiased``   ``B / (B - 1) (mean - 1 / B)``: an unbiased estimate of the probability of i over
                   the choice of hashes, if the values of a repetition are probabilities that sum
                   to 1
    =============  ==================================================================

    Two labels that share all R buckets always tie; ``n_ties_`` counts the labels for which an
    earlier one does, and ``twins()`` names them. R of at least ``2 log(L / sqrt(delta)) / log B``
    keeps every pair apart with probability 1 - delta; accuracy wants more.

    Parameters
    ----------
    n_buckets, n_repetitions : int or None
        B and R; None chooses by the number of labels (``default_size``).
    aggregation, link : str
        See above; link is "identity", "sigmoid", "hinge" (exp(-max(0, 1 - z)^2)) or "softmax" (over
        the buckets of a repetition).
    candidates, least_hits : int or None; int
        None decodes exactly. A number T decodes as the paper does: only labels in the T best
        buckets of at least ``least_hits`` repetitions (fewer where that names less than k) are
        answers, and the mean runs over those buckets alone.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        Seeds of the hashes; threads, which change no answer.

    After ``fit``: ``table_`` (L, R) int32, ``n_buckets_``, ``n_ties_``, ``seeds_`` (R,) uint32.

    Exact decoding costs O(R L) per row at worst, but in vectors of 16 rows, and much less where few
    buckets are likely: see ``cpp/kernels/codes/bucket_decode.h``. Nothing of size n x L is held.

    >>> code = HashCode(n_buckets=4, n_repetitions=3).fit([[0, 5], [3]])
    >>> code.encode([[0, 5]]).shape
    (1, 12)
    >>> code.table_.shape
    (6, 3)
    """

    type_tag = "hash-code"
    _not_copied = ("_decoder",)

    table_: np.ndarray
    seeds_: np.ndarray
    n_buckets_: int

    def __init__(
        self,
        *,
        n_buckets: int | None = None,
        n_repetitions: int | None = None,
        aggregation: str = "mean",
        link: str = "identity",
        candidates: int | None = None,
        least_hits: int = 2,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_buckets = n_buckets
        self.n_repetitions = n_repetitions
        self.aggregation = aggregation
        self.link = link
        self.candidates = candidates
        self.least_hits = least_hits
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def from_table(cls, table: Any, n_buckets: int, **params: Any) -> HashCode:
        """Return a code with given buckets ``table`` (L, R), such as an injective one.

        Parameters
        ----------
        table : array of shape (L, R)
            Bucket of every label in every repetition.
        n_buckets : int
            Buckets of a repetition.
        **params : object
            Parameters of the code.
        """
        table = np.asarray(table)
        if table.ndim != 2 or not table.size:
            raise ValueError(f"table must have the shape (labels, repetitions), got {table.shape}")
        n_buckets = as_k(n_buckets, "n_buckets")
        table = _as_buckets(table, n_buckets)
        self = cls(n_buckets=n_buckets, n_repetitions=table.shape[1], **params)
        self._check_params()
        self._set(table, self._seeds(table.shape[1]), n_buckets)
        return self

    def fit(self, Y: Any) -> HashCode:
        """Hash as many labels as ``Y`` has columns; what they are attached to is not looked at.

        An integer stands for that many labels.

        Parameters
        ----------
        Y : matrix of shape (n, L), or int
            Labels, or their number.
        """
        n_labels = int(Y) if isinstance(Y, (int, np.integer)) else as_labels(Y).shape[1]
        n_labels = as_k(n_labels, "number of labels")
        self._check_params()
        buckets, repetitions = default_size(n_labels)
        buckets = buckets if self.n_buckets is None else as_k(self.n_buckets, "n_buckets")
        if buckets > _MOST_BUCKETS:
            raise ValueError(f"n_buckets must be at most {_MOST_BUCKETS}, got {buckets}")
        if self.n_repetitions is not None:
            repetitions = as_k(self.n_repetitions, "n_repetitions")
        seeds = self._seeds(repetitions)
        table = core.hash_labels(0, n_labels, seeds, buckets, n_threads(self.n_jobs))
        self._set(table, seeds, buckets)
        return self

    def _check_params(self) -> None:
        if self.aggregation not in AGGREGATIONS:
            raise ValueError(
                f"aggregation must be one of {', '.join(AGGREGATIONS)}, got {self.aggregation!r}"
            )
        if self.link not in LINKS:
            raise ValueError(f"link must be one of {', '.join(LINKS)}, got {self.link!r}")
        if self.candidates is not None:
            as_k(self.candidates, "candidates")
        as_k(self.least_hits, "least_hits")
        if self.aggregation == "median" and (self.n_repetitions or 0) > _MOST_MEDIAN:
            raise ValueError(f"the median is taken over at most {_MOST_MEDIAN} repetitions")
        n_threads(self.n_jobs)

    def _seeds(self, repetitions: int) -> np.ndarray:
        """Return one seed per repetition; those of the first r do not depend on how many there
        are.
        """
        seed = as_seed(self.random_state)
        drawn = [np.random.SeedSequence([seed, r]).generate_state(1) for r in range(repetitions)]
        return np.concatenate(drawn).astype(np.uint32)

    def _set(self, table: np.ndarray, seeds: np.ndarray, n_buckets: int) -> None:
        for made in ("_decoder", "n_ties_"):
            vars(self).pop(made, None)
        self.table_, self.seeds_, self.n_buckets_ = table, seeds, n_buckets

    @cached_property
    def n_ties_(self) -> int:
        """Labels that share all buckets with an earlier one; counted when first asked for."""
        return len(self.twins()[0])

    @property
    def n_labels_(self) -> int:
        return len(self.table_)

    @property
    def n_repetitions_(self) -> int:
        return int(self.table_.shape[1])

    def encode(self, Y: Any) -> sp.csr_matrix:
        """Return bucket targets, CSR (n, R * B): column r * B + b for bucket b of repetition r.

        A bucket is as positive as its most positive label.

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        """
        self._check_fitted()
        return sp.hstack(
            [self.encode_repetition(Y, r) for r in range(self.n_repetitions_)], format="csr"
        )

    def encode_repetition(self, Y: Any, repetition: int) -> sp.csr_matrix:
        """Return bucket targets of one repetition, CSR (n, B).

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        repetition : int
            Number of a hash.
        """
        self._check_fitted()
        Y = as_labels(Y, n_labels=self.n_labels_)
        n = Y.shape[0]
        rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(Y.indptr))
        key = rows * self.n_buckets_ + self.table_[Y.indices, repetition]
        order = np.lexsort((-Y.data, key))
        key, values = key[order], Y.data[order]
        first = np.ones(len(key), bool)
        first[1:] = key[1:] != key[:-1]
        key, values = key[first], values[first]
        indptr = np.searchsorted(key, np.arange(n + 1, dtype=np.int64) * self.n_buckets_)
        return csr(indptr, (key % self.n_buckets_).astype(np.int32), values, self.n_buckets_)

    def decode(self, scores: Any, k: int, *, prune: bool = True) -> TopK:
        """Return the k best labels for bucket scores (n, R, B), or (n, R * B), float32.

        ``prune=False`` scans every label of every row, to the same answer.

        Parameters
        ----------
        scores : array of shape (n, R, B)
            Scores of buckets.
        k : int
            Answers per row.
        prune : bool, default=True
            False scans every label of every row, to the same answer.
        """
        self._check_fitted()
        self._check_params()
        R, B = self.n_repetitions_, self.n_buckets_
        scores = np.ascontiguousarray(scores, dtype=np.float32)
        if scores.size != len(scores) * R * B:
            raise ValueError(f"scores must have the shape (n, {R}, {B}), got {scores.shape}")
        scale, offset = (1.0 / R if self.aggregation == "mean" else 1.0), 0.0
        if self.aggregation == "unbiased":
            if B == 1:
                raise ValueError("the unbiased estimate needs at least two buckets")
            scale, offset = B / (B - 1) / R, -1.0 / (B - 1)
        ids, found = self._decoder.decode(
            scores.reshape(len(scores), R, B),
            min(as_k(k), self.n_labels_),
            link=0 if self.aggregation == "logits" else LINKS[self.link],
            aggregation=AGGREGATIONS[self.aggregation],
            scale=scale,
            offset=offset,
            exact=self.candidates is None,
            partial=self.aggregation in ("mean", "unbiased"),
            top_buckets=self.candidates or 1,
            least_hits=int(self.least_hits),
            allow_pruning=bool(prune),
            n_threads=n_threads(self.n_jobs),
        )
        return TopK._trusted(ids, found, self.n_labels_)

    @cached_property
    def _decoder(self) -> Any:
        """The native decoder, made on first use and not part of the state."""
        return core.BucketDecoder(self.table_, self.n_buckets_, n_threads(self.n_jobs))

    def with_labels(self, count: int, buckets: Any = None) -> HashCode:
        """Return a code with ``count`` more labels, numbered after the present ones; nothing to
        retrain.

        They are hashed like the others, or put into ``buckets`` (count, R).

        Parameters
        ----------
        count : int
            How many labels to add.
        buckets : array of shape (count, R), default=None
            Their buckets; None hashes them.
        """
        self._check_fitted()
        count, B = as_k(count, "count"), self.n_buckets_
        if buckets is None:
            first = self.n_labels_
            more = core.hash_labels(first, count, self.seeds_, B, n_threads(self.n_jobs))
        else:
            more = np.asarray(buckets)
            if more.shape != (count, self.n_repetitions_):
                raise ValueError(
                    f"buckets must have the shape ({count}, {self.n_repetitions_}), "
                    f"got {more.shape}"
                )
            more = _as_buckets(more, B)
        out = unfitted(self)
        out._set(np.concatenate([self.table_, more]), self.seeds_, B)
        return out

    def restricted(self, labels: np.ndarray) -> HashCode:
        """Return the code of these labels alone (ascending), numbered in their order; it decodes
        exactly.

        Parameters
        ----------
        labels : array of int
            Labels to keep.
        """
        self._check_fitted()
        out = unfitted(self, candidates=None)
        whole = len(labels) == self.n_labels_
        table = self.table_ if whole else np.ascontiguousarray(self.table_[labels])
        out._set(table, self.seeds_, self.n_buckets_)
        if whole:
            out._decoder = self._decoder
        return out

    def twins(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ``(labels, firsts)``: labels that share all buckets with an earlier one, and that
        one.
        """
        self._check_fitted()
        key = np.zeros(len(self.table_), np.uint64)
        for r in range(self.table_.shape[1]):  # a hash of the row; equal rows stand together
            key ^= self.table_[:, r].astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15 + r)
            key *= np.uint64(0xBF58476D1CE4E5B9)
            key ^= key >> np.uint64(29)
        order = np.argsort(key, kind="stable")
        later, earlier = order[1:], order[:-1]
        same = key[later] == key[earlier]
        same[same] = (self.table_[later[same]] == self.table_[earlier[same]]).all(axis=1)
        new = np.concatenate([[True], ~same])
        firsts = order[new][np.cumsum(new) - 1]
        by_label = np.argsort(order[~new])
        return order[~new][by_label], firsts[~new][by_label]

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.arrays.update(table=self.table_, seeds=self.seeds_)
        state.meta["n_buckets"] = self.n_buckets_
        return state

    def _set_state(self, state: persist.State) -> None:
        n_buckets = state.count("n_buckets")
        table = state.array("table", np.int32, (None, None))
        if not table.size or table.min() < 0 or table.max() >= n_buckets:
            raise ModelFormatError(f"array 'table' must hold buckets in [0, {n_buckets})")
        seeds = state.array("seeds", np.uint32, (table.shape[1],))
        self._set(table, seeds, n_buckets)


def _as_buckets(values: np.ndarray, n_buckets: int) -> np.ndarray:
    """Return bucket numbers as the decoder reads them; what is no bucket is refused, not
    rounded.
    """
    whole = values.dtype.kind in "iu" or (values.dtype.kind == "f" and (values % 1 == 0).all())
    if not whole or values.min() < 0 or values.max() >= n_buckets:
        raise ValueError(f"buckets are whole numbers and must lie in [0, {n_buckets})")
    return np.ascontiguousarray(values, dtype=np.int32)
