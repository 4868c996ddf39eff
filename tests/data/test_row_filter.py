"""A compact set of fingerprints: never forgets, seldom errs, bounded, the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data import row_filter
from longtail.data.fingerprints import text_fingerprints
from longtail.data.row_filter import Overlap, RowFilter
from longtail.exceptions import ModelFormatError


def keys(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def test_it_knows_every_row_and_hardly_any_other() -> None:
    own, others = keys(20_000, 0), keys(200_000, 1)
    seen = RowFilter.of(own)
    assert seen.overlap(own).hits.all() and seen.overlap(own).n_rows == len(own)
    assert seen.error == pytest.approx(1 / 4096, rel=0.01)
    wrong = seen.overlap(others).hits.sum()
    assert wrong == pytest.approx(200_000 * seen.error, abs=4 * np.sqrt(200_000 / 4096))
    assert (seen.remainders.nbytes + seen.counts.nbytes) / len(own) < 2.2


def test_false_alarms_are_not_reported_and_true_ones_are() -> None:
    seen = RowFilter.of(keys(20_000, 0))
    reported = sum(seen.overlap(keys(1_000, seed)).n_rows > 0 for seed in range(1, 300))
    assert reported <= 3  # 1 in 1,000 is allowed to be
    mixed = np.concatenate([keys(20_000, 0)[:400], keys(1_600, 5)])
    assert seen.overlap(mixed).n_rows == 400
    assert seen.overlap(keys(20_000, 0)[:1]).n_rows == 1  # a single row, and no other


def test_order_and_repetition_do_not_matter() -> None:
    own = keys(1_000, 0)
    seen, again = RowFilter.of(own), RowFilter.of(own[::-1])
    assert np.array_equal(seen.remainders, again.remainders)
    assert np.array_equal(seen.counts, again.counts)
    assert len(RowFilter.of(np.repeat(own, 3)).remainders) <= len(own)


def test_many_rows_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_filter, "MOST", 1_000)
    own = keys(30_000, 0)
    seen = RowFilter.of(own)
    assert seen.step == 32 and len(seen.remainders) < 1_200
    found = seen.overlap(np.concatenate([own[:10_000], keys(10_000, 1)]))
    assert found.hits.sum() < 500  # of those that can be asked about
    assert found.n_rows == pytest.approx(10_000, rel=0.2)
    assert seen.overlap(keys(10_000, 1)).n_rows == 0


def test_rows_can_be_added() -> None:
    first, second = keys(500, 0), keys(700, 1)
    both = RowFilter.of(first).with_rows(second)
    assert both.overlap(np.concatenate([first, second])).hits.all()
    assert not RowFilter.of(first).overlap(second).hits.all()
    assert both.error > RowFilter.of(first).error


def test_nothing_to_keep_and_rows_without_a_fingerprint() -> None:
    nothing = RowFilter.of(np.zeros(0, np.uint64))
    assert not nothing.overlap(keys(50, 0)).hits.any() and nothing.error == 0
    own = keys(10, 0)
    found = RowFilter.of(own).overlap(own, np.arange(10) < 4)
    assert found.hits.tolist() == [True] * 4 + [False] * 6 and found.n_asked == 4
    assert Overlap(np.zeros(0, bool), 0, 1, 0.1).n_rows == 0


def test_texts_are_compared_without_case_and_white_space() -> None:
    seen = RowFilter.of(text_fingerprints(["Paper  jam", "no wifi"]))
    assert seen.overlap(text_fingerprints(["paper jam", "wifi no"])).hits.tolist() == [True, False]


def test_damage_is_noticed() -> None:
    seen = RowFilter.of(keys(100, 0))
    with pytest.raises(ModelFormatError, match="damaged"):
        RowFilter(seen.remainders[:-1], seen.counts, 1).check()
    with pytest.raises(ModelFormatError, match="damaged"):
        RowFilter(seen.remainders, seen.counts, 0).check()
