"""``PairFeed``: batches of rows and pools of labels, with negatives that are mined as it goes.

Every ``period`` epochs, from epoch ``mine_from`` on, all rows and labels are encoded once. Rows
that lie close together are put into the same batches, so that the labels of one are hard negatives
for the others (NGAME, Dahiya et al. 2023); and each row gets the wrong labels that score best,
``negatives`` for each epoch of the period, none of them twice. Until then rows are in random order
and a pool holds labels of its rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail.deep.batches.pairs import PairBatch, PoolTargets, in_parts
from longtail.deep.batches.token_rows import TokenRows
from longtail.deep.group import Group, made_once
from longtail.tree import balanced_clusters

__all__ = ["SCORES", "Mining", "PairFeed", "hardest"]

SCORES = 1 << 28  # of a block of rows against all labels


@dataclass(frozen=True)
class Mining:
    """How batches and negatives are chosen.

    ``positives``: how many labels of a row are put into the pool (beta); ``pick_one``: the others
    count neither as right nor as wrong. ``negatives``: mined labels of a row in an epoch (eta).
    ``clusters``: rows of similar texts in a batch: "batch" for all of them, "none", or the epochs
    at which clusters, of one row at first, double in size. ``pool``: the most labels of a pool.
    ``by``: whose vectors are looked at, those of the "dual" head or of "both".
    """

    positives: int = 2
    pick_one: bool = False
    negatives: int = 4
    period: int = 5
    mine_from: int = 1
    clusters: Any = "batch"
    pool: int | None = None
    by: str = "dual"


class PairFeed:
    """``look()`` returns unit vectors of all rows and labels, as the model now makes them; in a
    ``group``, those of its own labels: each process searches a range of them.
    """

    def __init__(
        self,
        queries: TokenRows,
        labels: TokenRows,
        Y: sp.csr_matrix,
        rows: np.ndarray,
        batch_size: int,
        mining: Mining,
        seed: int,
        device: torch.device,
        look: Callable[[], tuple[torch.Tensor, torch.Tensor]],
        group: Group | None = None,
    ) -> None:
        self.group = group
        self.queries, self.labels, self.Y = queries, labels, sp.csr_matrix(Y)
        has_labels = np.diff(self.Y.indptr)[rows] > 0
        self.rows = rows[has_labels] if has_labels.any() else rows
        self.batch_size, self.mining, self.seed = batch_size, mining, seed
        self.device, self.look = device, look
        self.mined: np.ndarray | None = None  # (rows, negatives * period), -1 where there is none
        self.cluster: np.ndarray | None = None  # (rows,) numbers of clusters

    def __len__(self) -> int:
        return -(-len(self.rows) // self.batch_size)

    def epoch(self, number: int) -> Iterator[tuple[PairBatch, PoolTargets]]:
        since = number - self.mining.mine_from
        if since >= 0 and since % self.mining.period == 0:
            self._mine(number)
        rng = np.random.default_rng([self.seed, 1, number])
        sampled = self._sampled(rng)
        for places in self._batches(rng):
            yield self._pair(places, sampled, since % self.mining.period, rng)

    def arrays(self) -> dict[str, torch.Tensor]:
        """Return what was mined last, for a checkpoint."""
        found = {"mined": self.mined, "cluster": self.cluster}
        return {name: torch.tensor(a) for name, a in found.items() if a is not None}

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        """Take over what ``arrays`` returned."""
        for name, array in arrays.items():
            setattr(self, name, array.numpy())

    def _mine(self, number: int) -> None:
        queries, labels = self.look()
        queries = queries[torch.tensor(self.rows).to(queries.device)]
        parts = self._clusters_in(number)
        self.cluster = None
        if parts > 1:
            self.cluster = made_once(
                self.group,
                lambda: balanced_clusters(
                    queries.cpu().numpy(), parts, random_state=self.seed + number
                ),
            )
        count = min(self.mining.negatives * self.mining.period, self.Y.shape[1])
        self.mined = None
        if count:
            mined = hardest(queries, labels, self.Y[self.rows], count, self.group)
            rng = np.random.default_rng([self.seed, 7, number])
            self.mined = rng.permuted(mined, axis=1)

    def _clusters_in(self, number: int) -> int:
        """Return how many clusters the rows are put into, a multiple of the number of batches."""
        clusters = self.mining.clusters
        if clusters == "none" or len(self) < 2:
            return 0
        size = self.batch_size
        if clusters != "batch":
            size = min(size, 2 ** sum(number >= epoch for epoch in clusters))
        if size <= 1:
            return 0
        return len(self) * max(1, self.batch_size // size)

    def _batches(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the places (in ``rows``) of every batch."""
        n = len(self.rows)
        if self.cluster is None:
            return np.array_split(rng.permutation(n), len(self))
        sizes = np.bincount(self.cluster)
        turn = rng.permutation(len(sizes))  # the order in which clusters come
        order = rng.permutation(n)
        order = order[np.argsort(np.argsort(turn)[self.cluster[order]], kind="stable")]
        ends = np.cumsum(sizes[turn])
        return np.split(order, ends[len(sizes) // len(self) - 1 : -1 : len(sizes) // len(self)])

    def _sampled(self, rng: np.random.Generator) -> np.ndarray:
        """Return some labels of every row, (rows, positives), padded with -1."""
        Y = self.Y[self.rows]
        counts = np.diff(Y.indptr)
        row = np.repeat(np.arange(len(counts)), counts)
        order = np.lexsort((rng.random(Y.nnz), row))
        place = np.arange(Y.nnz) - np.repeat(Y.indptr[:-1], counts)
        out = np.full((len(counts), self.mining.positives), -1, np.int32)
        few = place < self.mining.positives
        out[row[few], place[few]] = Y.indices[order][few]
        return out

    def _pair(
        self, places: np.ndarray, sampled: np.ndarray, turn: int, rng: np.random.Generator
    ) -> tuple[PairBatch, PoolTargets]:
        rows = self.rows[places]
        longest_first = np.argsort(-self.queries.lengths[rows], kind="stable")
        rows, places = rows[longest_first], places[longest_first]
        wanted = sampled[places]
        pool = np.unique(wanted[wanted >= 0])
        if self.mined is not None:
            n = self.mining.negatives
            hard = np.setdiff1d(self.mined[places, turn * n : (turn + 1) * n], [-1, *pool])
            if self.mining.pool is not None and len(pool) + len(hard) > self.mining.pool:
                hard = rng.permutation(hard)[: max(0, self.mining.pool - len(pool))]
            pool = np.union1d(pool, hard)
        by_length = np.argsort(-self.labels.lengths[pool], kind="stable")
        place_of = np.empty(len(pool), np.int64)
        place_of[by_length] = np.arange(len(pool))

        Y = self.Y[rows]
        at = np.minimum(np.searchsorted(pool, Y.indices), max(0, len(pool) - 1))
        inside = pool[at] == Y.indices if len(pool) else np.zeros(0, bool)
        row = np.repeat(np.arange(len(rows)), np.diff(Y.indptr))[inside]
        column = place_of[at[inside]]
        targets = torch.zeros(len(rows), len(pool), device=self.device)
        index = torch.tensor(np.stack([row, column])).to(self.device)
        targets[index[0], index[1]] = torch.tensor(Y.data[inside]).to(self.device)
        absent = None
        if self.mining.pick_one:
            picked = torch.zeros_like(targets, dtype=torch.bool)
            has = wanted[:, 0] >= 0
            column = place_of[np.searchsorted(pool, wanted[has, 0])]
            index = torch.tensor(np.stack([np.flatnonzero(has), column])).to(self.device)
            picked[index[0], index[1]] = True
            absent = (targets > 0) & ~picked
            targets = targets * picked
        ids = pool[by_length]
        parts = in_parts(self.queries, rows, self.device) + in_parts(self.labels, ids, self.device)
        labels = torch.tensor(ids.astype(np.int64)).to(self.device)
        return PairBatch(parts), PoolTargets(labels, targets, absent=absent)


@torch.no_grad()
def hardest(
    queries: torch.Tensor,
    labels: torch.Tensor,
    Y: sp.csr_matrix,
    count: int,
    group: Group | None = None,
) -> np.ndarray:
    """Return the ``count`` labels of every row that score best and are not its own, best first;
    (n, count) int32, padded with -1. ``queries`` (n, e), ``labels`` (L, e), or of a ``group`` those
    of its share.
    """
    out = np.full((len(queries), count), -1, np.int32)
    size, first = 1, 0
    if group is not None:
        own = group.share(Y.shape[1])
        size, first = group.size, own.start
    block = max(1, SCORES * size // max(1, Y.shape[1]))  # the same in every process
    if group is not None:
        Y = sp.csr_matrix(Y[:, own])
    for begin in range(0, len(queries), block):
        own = Y[begin : begin + block]
        row = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
        index = torch.tensor(np.stack([row, own.indices]).astype(np.int64)).to(queries.device)
        scores = queries[begin : begin + block] @ labels.T
        scores[index[0], index[1]] = -torch.inf
        best, ids = scores.topk(min(count, len(labels)), dim=1)
        if group is not None:
            ids, best = group.best(ids + first, best, count)
        ids = ids.masked_fill(best == -torch.inf, -1)
        out[begin : begin + block] = ids.cpu().numpy()
    return out
