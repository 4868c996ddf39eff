from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import TopK, metrics

TOP = TopK([[2, 0, 1], [1, 3, -1]], [[0.9, 0.5, 0.4], [0.8, 0.1, -np.inf]], n_labels=9)


def test_later_candidates_move_up():
    out = metrics.filter_predictions(TOP, [[0, 2], [1, 1], [0, 7]])
    assert out.indices.tolist() == [[0, 1], [3, -1]]
    assert out.scores.tolist() == [pytest.approx([0.5, 0.4]), pytest.approx([0.1, -np.inf])]
    assert out.n_labels == 9 and TOP.indices.tolist() == [[2, 0, 1], [1, 3, -1]]


def test_the_result_is_as_deep_as_every_row_can_fill():
    assert metrics.filter_predictions(TOP, [[1, 1]]).k == 3  # that ranking had ended by itself
    assert metrics.filter_predictions(TOP, [[0, 2], [0, 1]]).k == 1
    with pytest.raises(ValueError, match=r"\b3\b.*row 0"):
        metrics.filter_predictions(TOP, [[0, 0], [0, 1], [0, 2]])
    with pytest.raises(ValueError, match="k=3"):
        metrics.precision_at_k([[0], [1]], metrics.filter_predictions(TOP, [[0, 2]]), k=3)


def test_rankings_that_do_not_say_how_many_labels_there_are():
    out = metrics.filter_predictions([[2, 0, 1], [1, 3, 0]], [[0, 2], [1, 7]])
    assert out.indices.tolist() == [[0, 1], [1, 3]] and out.n_labels is None
    with pytest.raises(ValueError, match="row 2"):
        metrics.filter_predictions([[2, 0, 1], [1, 3, 0]], [[2, 0]])


def test_asking_for_more_than_is_left_pads_and_warns():
    with pytest.warns(UserWarning, match=r"\b1\b.*\b3\b"):
        out = metrics.filter_predictions(TOP, [[0, 2]], k=3)
    assert out.indices.tolist() == [[0, 1, -1], [1, 3, -1]]


@pytest.mark.parametrize("pairs", [[], np.empty((0, 2), int), np.empty(0), [[0, 5]]])
def test_nothing_to_remove(pairs):
    assert metrics.filter_predictions(TOP, pairs) == TOP
    assert metrics.filter_predictions(TOP, pairs, k=2) == TOP.head(2)


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        ([[2, 0]], ValueError, "row 2.* 2 "),
        ([[-1, 0]], ValueError, "row -1"),
        ([[0, 9]], ValueError, "label 9.* 9 "),
        ([[0, -1]], ValueError, "label -1"),
        ([[0, 0], [2, 0]], ValueError, "row 2.* 2 "),
        ([[0, 0], [-1, 0]], ValueError, "row -1"),
        ([[0, 0], [0, 9]], ValueError, "label 9.* 9 "),
        ([[0, 0], [0, -1]], ValueError, "label -1"),
        ([[0, 1, 2]], ValueError, r"shape \(m, 2\)"),
        ([[0.5, 1]], TypeError, "float64"),
    ],
)
def test_bad_pairs_are_refused(pairs, error, message):
    with pytest.raises(error, match=message):
        metrics.filter_predictions(TOP, pairs)
    with pytest.raises(error, match=message):
        metrics.filter_truth(sp.csr_matrix((2, 9)), pairs)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_filtering_rankings_is_ranking_filtered_scores(seed, k):
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 6, size=(6, 8)).astype(np.float32)
    mask = rng.random(scores.shape) < 0.3
    expected = TopK.from_scores(sp.csr_matrix(np.where(mask, 0, scores)), k)
    for top in (scores, sp.csr_matrix(scores), TopK.from_scores(scores, 8)):
        assert metrics.filter_predictions(top, np.argwhere(mask), k=k) == expected


def test_truth_without_pairs():
    Y = sp.csr_matrix(np.array([[1, 0, 0.5], [0, 1, 0]], np.float32))
    out = metrics.filter_truth(Y, [[0, 2], [1, 0], [0, 2]])
    assert out.toarray().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert out.nnz == 2 and out.dtype == np.float32 and Y.nnz == 3


@pytest.fixture(scope="module")
def amazon():
    """Test labels and filter pairs of LF-AmazonTitles-131K."""
    if "LONGTAIL_DATA" not in os.environ:
        pytest.skip("set LONGTAIL_DATA to the folder of real data sets")
    folder = Path(os.environ["LONGTAIL_DATA"]) / "LF-AmazonTitles-131K-partial"
    if not folder.exists():
        pytest.skip(f"{folder} is not there")
    with (folder / "tst_X_Y.txt").open() as lines:
        n, n_labels = map(int, next(lines).split())
        rows = [[int(field.partition(":")[0]) for field in line.split()] for line in lines]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = np.concatenate(rows)
    Y = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(n, n_labels))
    Y.sort_indices()
    return Y, np.loadtxt(folder / "tst_filter_labels.txt", dtype=np.int64)


def test_predicting_the_filtered_labels_gains_nothing(amazon):
    """Ranking each row's filtered labels first, then its true ones, is perfect once filtered."""
    Y, pairs = amazon
    assert Y.shape == (134_835, 131_073) and pairs.shape == (79_663, 2)
    own = sp.csr_matrix((np.full(len(pairs), 2.0, np.float32), pairs.T), shape=Y.shape)
    top = TopK.from_scores(own + Y, 60)
    assert metrics.precision_at_k(Y, top, k=1) == pytest.approx(1 - (own.getnnz(axis=1) > 0).mean())
    filtered = metrics.filter_predictions(top, pairs)
    assert metrics.precision_at_k(Y, filtered, k=1) == 1
    assert metrics.ndcg_at_k(Y, filtered, k=5) == pytest.approx(1)
    m = metrics.match(Y, filtered, k=5)
    assert metrics.recall_at_k(Y, m, k=5) == pytest.approx(
        np.mean(np.minimum(Y.getnnz(axis=1), 5) / Y.getnnz(axis=1))
    )


def test_only_filtered_labels_predicted_leaves_no_prediction(amazon):
    Y, pairs = amazon
    own = sp.csr_matrix((np.ones(len(pairs), np.float32), pairs.T), shape=Y.shape)
    filtered = metrics.filter_predictions(own, pairs)
    assert (filtered.indices == -1).all()
    assert metrics.precision_at_k(Y, filtered, k=5) == 0
    assert metrics.filter_truth(Y, pairs).nnz == Y.nnz  # the benchmark's truth does not hold them
