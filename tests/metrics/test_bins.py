from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import TopK, metrics


def test_bins_have_equal_volume_and_run_from_head_to_tail():
    counts = np.array([1, 30, 2, 10, 10, 3, 4, 0])
    bins = metrics.frequency_bins(counts, n_bins=2)
    assert bins.bin_of_label.tolist() == [1, 0, 1, 1, 1, 1, 1, 1]
    assert bins.volume.tolist() == [30, 30]
    assert bins.n_labels.tolist() == [1, 7]
    assert bins.min_count.tolist() == [30, 0] and bins.max_count.tolist() == [30, 10]
    assert len(bins) == 2


def test_a_label_larger_than_a_bin_leaves_bins_empty():
    bins = metrics.frequency_bins(np.array([60, 10, 10, 10, 10]), n_bins=5)
    assert bins.volume.tolist() == [60, 0, 0, 20, 20]
    assert bins.min_count.tolist() == [60, 0, 0, 10, 10]


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 7))
def test_bins_of_any_frequencies(counts, n_bins):
    counts = np.array(counts)
    bins = metrics.frequency_bins(counts, n_bins)
    order = np.lexsort((np.arange(len(counts)), -counts))
    assert (np.diff(bins.bin_of_label[order]) >= 0).all()
    assert bins.volume.sum() == counts.sum() and bins.n_labels.sum() == len(counts)
    assert (bins.bin_of_label[counts == 0] == n_bins - 1).all()
    running = 0
    for label in order:  # the definition, one label at a time
        if counts[label]:
            assert bins.bin_of_label[label] == running * n_bins // counts.sum()
        running += counts[label]


def test_frequencies_come_from_training_labels_too():
    Y = sp.csr_matrix(np.array([[1, 0, 1], [1, 0, 0]]))
    assert metrics.frequency_bins(Y, 2).volume.tolist() == [2, 1]
    assert metrics.frequency_bins([[0, 2], [0]], 2).volume.tolist() == [2, 1]


@pytest.mark.parametrize("bad", [np.array([1, -1]), np.array([np.nan]), np.array([np.inf, 1])])
def test_bad_frequencies_are_refused(bad):
    with pytest.raises(ValueError, match="frequencies"):
        metrics.frequency_bins(bad)


def test_contributions_add_up_to_the_metric():
    rng = np.random.default_rng(0)
    Y = (rng.random((50, 30)) < 0.1).astype(np.float32)
    top = TopK.from_scores(rng.random((50, 30)) + Y, 8)
    p = rng.uniform(0.1, 1, 30)
    bins = metrics.frequency_bins(rng.integers(0, 100, 30), n_bins=4)
    found = metrics.contribution_by_bin(Y, top, bins, k=3)
    assert found.contribution.sum() == pytest.approx(metrics.precision_at_k(Y, top, 3))
    in_bin = bins.bin_of_label == 1
    hits = metrics.precision_at_k(Y * in_bin, top, 3)
    assert found.contribution[1] == pytest.approx(hits)
    assert found.recall[1] == pytest.approx(hits * 3 * 50 / (Y * in_bin).sum())
    for normalize in (True, False):
        scored = metrics.contribution_by_bin(Y, top, bins, k=3, p=p, normalize=normalize)
        psp = metrics.ps_precision_at_k(Y, top, p, 3, normalize=normalize)
        assert scored.contribution.sum() == pytest.approx(psp)
    five = metrics.contribution_by_bin(Y, top, bins).contribution.sum()  # unless told otherwise
    assert five == pytest.approx(metrics.precision_at_k(Y, top, 5))


def test_bins_of_other_labels_are_refused():
    with pytest.raises(ValueError, match=r"\b2\b.*\b3\b"):
        metrics.contribution_by_bin(np.eye(3), np.eye(3), metrics.frequency_bins(np.ones(2)), k=1)
