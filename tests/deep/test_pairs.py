"""Batches of rows and pools of labels, and what is mined for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="torch is not installed")

from longtail.data.tokens import Tokens  # noqa: E402
from longtail.deep.batches.pair_feed import Mining, PairFeed, hardest  # noqa: E402
from longtail.deep.batches.pairs import PairBatch  # noqa: E402
from longtail.deep.batches.token_rows import TokenRows  # noqa: E402

CPU = torch.device("cpu")


def made(n: int = 50, n_labels: int = 30, seed: int = 0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    Y = sp.csr_matrix((rng.random((n, n_labels)) < 0.12).astype(np.float32))
    rows = TokenRows(Tokens.from_lists([[i] * (1 + i % 7) for i in range(n)]), CPU)
    labels = TokenRows(Tokens.from_lists([[100 + j] * (1 + j % 5) for j in range(n_labels)]), CPU)
    unit = [
        torch.nn.functional.normalize(torch.tensor(a), dim=1)
        for a in (
            rng.standard_normal((n, 6)).astype(np.float32),
            rng.standard_normal((n_labels, 6)).astype(np.float32),
        )
    ]
    return rows, labels, Y, unit


def feed_of(mining: Mining, batch_size: int = 8, **other: Any) -> tuple[PairFeed, Any]:
    rows, labels, Y, unit = made(**other)
    numbers = np.arange(len(rows))
    feed = PairFeed(rows, labels, Y, numbers, batch_size, mining, 3, CPU, lambda: tuple(unit))
    return feed, Y


def texts_of(batch: PairBatch) -> list[int]:
    return [int(ids[0]) for part in batch.parts for ids in part.ids]


@pytest.mark.parametrize("clusters", ["batch", "none", (1, 2)])
@pytest.mark.parametrize("pick_one", [False, True])
def test_every_true_label_of_the_pool_counts(clusters: Any, pick_one: bool) -> None:
    mining = Mining(positives=2, negatives=3, period=2, clusters=clusters, pick_one=pick_one)
    feed, Y = feed_of(mining)
    dense = Y.toarray()
    for epoch in (1, 2, 3):
        seen = []
        for batch, targets in feed.epoch(epoch):
            texts = texts_of(batch)
            rows = np.array(texts[: len(targets)])
            pool = np.array(texts[len(targets) :]) - 100
            seen += rows.tolist()
            assert pool.tolist() == targets.labels.tolist() and len(set(pool.tolist())) == len(pool)
            expected = dense[rows][:, pool]
            if pick_one:
                assert (targets.targets.sum(1) == 1).all()
                right = (targets.targets > 0) | targets.absent
                np.testing.assert_array_equal(right.numpy(), expected > 0)
                assert not (targets.present & targets.absent).any()
            else:
                np.testing.assert_array_equal(targets.targets.numpy(), expected)
                assert targets.present.all() and (targets.targets.sum(1) >= 1).all()
        with_labels = np.flatnonzero(np.diff(Y.indptr))
        assert sorted(seen) == with_labels.tolist()


def test_the_hardest_are_the_best_wrong_ones() -> None:
    _, _, Y, (rows, labels) = made()
    scores = (rows @ labels.T).numpy()
    scores[Y.toarray() > 0] = -np.inf
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(hardest(rows, labels, Y, 4), expected)
    everything = hardest(rows, labels, Y, 30)
    assert ((everything < 0).sum(1) == np.diff(Y.indptr)).all()


def test_each_mined_label_is_used_once_in_a_period() -> None:
    feed, Y = feed_of(Mining(positives=1, negatives=3, period=4, clusters="none"), batch_size=1)
    used: dict[int, list[int]] = {}
    for epoch in range(1, 5):
        for batch, targets in feed.epoch(epoch):
            row = texts_of(batch)[0]
            wrong = targets.labels[targets.targets[0] == 0]
            used.setdefault(row, []).extend(wrong.tolist())
    _, _, _, (rows, labels) = made()
    best = hardest(rows, labels, Y, 12)
    for row, found in used.items():
        assert sorted(found) == sorted(best[row].tolist())


def test_batches_are_clusters() -> None:
    feed, _ = feed_of(Mining(clusters="batch", period=2), n=96)
    list(feed.epoch(1))
    batches = feed._batches(np.random.default_rng(0))
    assert len(batches) == len(feed)
    assert all(len(set(feed.cluster[places])) == 1 for places in batches)
    growing, _ = feed_of(Mining(clusters=(1, 3), period=1), n=96)
    list(growing.epoch(1))
    assert np.bincount(growing.cluster).max() == 2
    list(growing.epoch(3))
    assert np.bincount(growing.cluster).max() == 4


def test_a_pool_has_a_limit_and_a_checkpoint_its_mining() -> None:
    feed, _ = feed_of(Mining(positives=1, negatives=5, pool=10))
    assert max(len(targets.labels) for _, targets in feed.epoch(1)) <= 10
    again, _ = feed_of(Mining(positives=1, negatives=5, pool=10))
    again.load(feed.arrays())
    for (a, s), (b, t) in zip(feed.epoch(2), again.epoch(2), strict=True):
        assert texts_of(a) == texts_of(b) and torch.equal(s.targets, t.targets)


def test_pieces_are_the_batch() -> None:
    feed, _ = feed_of(Mining())
    batch, _ = next(iter(feed.epoch(1)))
    for count in (1, 2, 5, 100):
        pieces = batch.pieces(count)
        assert [text for piece in pieces for text in texts_of(piece)] == texts_of(batch)
