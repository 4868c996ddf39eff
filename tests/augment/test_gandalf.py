"""Training rows from label texts: exact cases, identities, and a reference of a few lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import longtail as lt
from longtail.augment import append_rows, co_occurrence, gandalf, random_walk, tail_first, uniform

CASE = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], np.float32)  # G = [[3,2,1],[2,2,1],[1,1,1]]
TEXTS = ["zero", "one", "two"]


def reference(Y: np.ndarray, delta: float, kind: str) -> np.ndarray:
    """Targets (L, L) the obvious way; row j belongs to the text of label j."""
    G, totals = Y.T @ Y, Y.sum(axis=0)
    out = np.eye(Y.shape[1])
    for j in range(Y.shape[1]):
        for i in range(Y.shape[1]):
            if i != j and G[i, j] > 0:
                share = G[i, j] / totals[j]
                if kind == "symmetric":
                    share = (share + G[i, j] / totals[i]) / 2
                if share > delta:
                    out[j, i] = 1 / (1 + np.exp(-share)) if kind == "symmetric" else share
    return out


labels = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 9)), elements=st.sampled_from([0.0, 1])
)


@given(Y=labels, delta=st.sampled_from([0.0, 0.1, 0.5, 1.0]), kind=st.sampled_from([0, 1]))
@settings(max_examples=150, deadline=None)
def test_against_the_reference(Y: np.ndarray, delta: float, kind: int) -> None:
    graph = ("co-occurrence", "symmetric")[kind]
    rows, targets = gandalf(Y, np.eye(Y.shape[1]), delta, graph=graph)
    np.testing.assert_allclose(targets.toarray(), reference(Y, delta, graph), rtol=1e-6)
    assert targets.has_sorted_indices and targets.dtype == np.float32
    assert np.array_equal(rows, np.eye(Y.shape[1]))
    assert (targets.diagonal() == 1).all()
    assert targets.data.min() > 0 and targets.data.max() <= 1
    assert (Y.T @ Y).diagonal().sum() == np.count_nonzero(Y)


def test_the_case_of_the_paper() -> None:
    texts, targets = gandalf(CASE, TEXTS)
    assert texts == TEXTS
    expected = [[1, 2 / 3, 1 / 3], [1, 1, 0.5], [1, 1, 1]]
    np.testing.assert_allclose(targets.toarray(), expected, rtol=1e-6)


def test_the_condition_is_the_label_whose_text_it_is() -> None:
    """A rare label that always comes with a frequent one: its text is about both, not the other
    way round.
    """
    Y = np.zeros((20, 2))
    Y[:, 0], Y[0, 1] = 1, 1
    _, targets = gandalf(Y, ["frequent", "rare"])
    assert targets.toarray().tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("graph", ["co-occurrence", "symmetric", "random-walk"])
def test_delta_of_one_is_self_annotation(graph: str) -> None:
    Y = sp.random(50, 12, 0.3, random_state=0, data_rvs=np.ones, format="csr")
    _, own = gandalf(Y, np.eye(12), graph="self")
    _, targets = gandalf(Y, np.eye(12), 1.0, graph=graph)
    assert (own.toarray() == np.eye(12)).all() and (targets != own).nnz == 0


def test_a_share_of_delta_is_dropped() -> None:
    Y = np.zeros((10, 2))
    Y[:, 0], Y[0, 1] = 1, 1  # 1 / 10
    assert gandalf(Y, ["a", "b"], 0.1)[1].toarray()[0].tolist() == [1, 0]
    assert gandalf(Y, ["a", "b"], 0.09)[1].toarray()[0, 1] == pytest.approx(0.1)


@pytest.mark.parametrize("graph", ["co-occurrence", "symmetric", "random-walk"])
def test_a_label_without_rows_has_itself(graph: str) -> None:
    Y = np.array([[1, 1, 0], [1, 0, 0]])
    _, targets = gandalf(Y, TEXTS, 0.0, graph=graph)
    assert targets[2].toarray().tolist() == [[0, 0, 1]]
    assert targets.getcol(2).nnz == 1


def test_a_sigmoid_leaves_absent_pairs_absent() -> None:
    Y = np.eye(4)[[0, 1, 2, 3, 0]]
    _, targets = gandalf(Y, list("abcd"), 0.0, graph="symmetric")
    assert targets.nnz == 4


def test_soft_labels_count_by_their_value() -> None:
    Y = np.array([[0.5, 1.0], [1.0, 0.0]])
    found = co_occurrence(Y, 0.0).toarray()
    np.testing.assert_allclose(found, [[1, 0.5 / 1.5], [0.5, 1]], rtol=1e-6)


def test_filter_pairs_are_not_counted() -> None:
    pairs = [[0, 1], [2, 1], [0, 0]]
    Y = CASE.copy()
    Y[[0, 2, 0], [1, 1, 0]] = 0
    for graph in ("co-occurrence", "symmetric", "random-walk", "self"):
        found = gandalf(CASE, TEXTS, filter_pairs=pairs, graph=graph)[1]
        assert (found != gandalf(Y, TEXTS, graph=graph)[1]).nnz == 0
    with pytest.raises(ValueError, match="name row 9"):
        gandalf(CASE, TEXTS, filter_pairs=[[9, 0]])


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from longtail.augment import co_occurrence as counting
    from longtail.augment import random_walk as walking

    Y = sp.random(300, 70, 0.05, random_state=1, data_rvs=np.ones, format="csr")
    whole, walks = co_occurrence(Y), random_walk(Y, length=30)
    for size in (1, 37, 1000):
        monkeypatch.setitem(counting.__globals__, "_BLOCK", size)
        monkeypatch.setitem(walking.__globals__, "_BLOCK", size)
        for one, other in ((co_occurrence(Y), whole), (random_walk(Y, length=30), walks)):
            assert np.array_equal(one.data, other.data)
            assert np.array_equal(one.indices, other.indices)


def test_rows_of_some_labels_are_those_of_all() -> None:
    Y = sp.random(200, 40, 0.1, random_state=2, data_rvs=np.ones, format="csr")
    some = np.array([7, 3, 31])
    mask = np.isin(np.arange(40), some)
    for graph in ("co-occurrence", "symmetric", "random-walk", "self"):
        X, all_targets = gandalf(Y, np.eye(40), graph=graph)
        rows, targets = gandalf(Y, np.eye(40), graph=graph, labels=some)
        assert np.array_equal(rows, X[some]) and (targets != all_targets[some]).nnz == 0
        masked = gandalf(Y, np.eye(40), graph=graph, labels=mask)[1]
        assert (masked != all_targets[np.sort(some)]).nnz == 0
    assert gandalf(Y, np.eye(40), labels=[])[1].shape == (0, 40)


def test_a_walk_goes_where_rows_lead() -> None:
    Y = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
    walks = random_walk(Y, length=4000).toarray()
    # From 0: back to 0 or on to 1, each half of the time after a restart.
    assert walks[0, 1] == pytest.approx(0.9, abs=0.15)
    assert 0 < walks[0, 2] < walks[0, 1] and walks[0, 3] == 0
    assert walks[3].tolist() == [0, 0, 0, 1]
    assert (np.diff(random_walk(Y, keep=2).indptr) <= 2).all()
    at_home = random_walk(Y, restart=1.0, length=200).toarray()
    assert at_home[0, 2] == 0 < at_home[0, 1]
    same = random_walk(Y, random_state=5)
    assert (same != random_walk(Y, random_state=5)).nnz == 0
    assert (same != random_walk(Y, random_state=6)).nnz > 0


def test_labels_without_a_text_are_left_out() -> None:
    X = np.array([[1, 0], [0, 0], [0, 2]], np.float32)
    expected = gandalf(CASE, TEXTS)[1][[0, 2]]
    for given_rows in (["a", " ", "b"], ["a", None, "b"], X, sp.csr_matrix(X)):
        rows, targets = gandalf(CASE, given_rows)
        assert (targets != expected).nnz == 0 and rows.shape[0] == 2
    tokens = lt.data.Tokens.from_lists([[3, 4], [], [5]])
    assert [row.tolist() for row in gandalf(CASE, tokens)[0]] == [[3, 4], [5]]


def test_tokens_of_an_empty_text_are_no_text() -> None:
    pytest.importorskip("tokenizers")
    from longtail.features.tokenizer import Tokenizer

    class Framed(Tokenizer):  # as most pretrained ones: every text begins and ends with a mark
        def encode(self, texts: Any, max_length: int | None = None) -> lt.data.Tokens:
            plain = super().encode(texts, max_length)
            framed = lt.data.Tokens.from_lists([[0, *row.tolist(), 0] for row in plain])
            return lt.data.Tokens(framed.offsets, framed.ids, source=self)

    tokenizer = Framed(Tokenizer.trained(["zero two"], least=1).json)
    rows, targets = gandalf(CASE, tokenizer.encode(["zero", "", "two"]))
    assert len(rows) == 2 and (targets != gandalf(CASE, TEXTS)[1][[0, 2]]).nnz == 0


def test_a_graph_of_ones_own() -> None:
    graph = sp.csr_matrix(np.array([[0, 0.5, 0.05], [0, 0.2, 0], [1, 0, 0]]))
    _, targets = gandalf(CASE, TEXTS, graph=graph)
    np.testing.assert_allclose(targets.toarray(), [[1, 0.5, 0], [0, 1, 0], [1, 0, 1]])


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"label_X": ["a"]}, ValueError, "label_X has 1 rows, but Y has 3 labels"),
        ({"label_X": "abc"}, TypeError, "label_X is a single text"),
        ({"delta": 1.5}, ValueError, "delta must lie between 0 and 1"),
        ({"delta": "much"}, TypeError, "delta must be a number"),
        ({"graph": "walk"}, ValueError, "graph must be one of co-occurrence"),
        ({"graph": np.eye(4)}, ValueError, "graph has 4 labels, expected 3"),
        ({"labels": [3]}, ValueError, "labels names label 3, but there are 3 labels"),
        ({"labels": [1, 1]}, ValueError, "twice"),
        ({"labels": [True]}, ValueError, "a mask of 1"),
        ({"labels": [0.5]}, TypeError, "label ids or a mask"),
    ],
)
def test_what_is_refused(how: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gandalf(**{"Y": CASE, "label_X": TEXTS, **how})


def test_subsets() -> None:
    counts = [50, 20, 20, 5, 5, 5, 5, 1, 1, 1]
    Y = sp.csr_matrix(np.arange(50)[:, None] < np.array(counts), dtype=np.float32)
    assert len(uniform(Y, 4)) == 4 and np.array_equal(uniform(Y, 4), uniform(Y, 4))
    assert not np.array_equal(uniform(Y, 4, random_state=1), uniform(Y, 4, random_state=2))
    bins = lt.metrics.frequency_bins(Y, 4).bin_of_label
    last = np.flatnonzero(bins == 3)
    assert 1 < len(last) < 10
    assert np.array_equal(tail_first(Y, len(last), n_bins=4), last)
    more = tail_first(Y, len(last) + 1, n_bins=4)
    assert set(last) < set(more) and bins[more].min() >= 2
    assert set(tail_first(Y, 2, n_bins=4)) < set(last)
    assert np.array_equal(tail_first(Y, 10), np.arange(10))
    with pytest.raises(ValueError, match="size is 11, but there are 10 labels"):
        uniform(Y, 11)


def test_rows_of_every_kind_are_appended() -> None:
    Y, more = sp.csr_matrix(CASE), sp.csr_matrix(CASE[:2] / 2)
    dense = np.arange(6, dtype=np.float32).reshape(3, 2)
    tokens = lt.data.Tokens.from_lists([[1], [2, 3], []])
    for X in (dense, sp.csr_matrix(dense), tokens, ["a", "b", "c"]):
        rows, both = append_rows(X, Y, X[:2], more)
        np.testing.assert_allclose(both.toarray(), np.vstack([CASE, CASE[:2] / 2]))
        flat = (row.toarray() if sp.issparse(row) else row for row in rows)
        as_lists = [np.ravel(row).tolist() for row in flat]
        assert len(as_lists) == 5 and as_lists[3:] == as_lists[:2]
    with pytest.raises(TypeError, match="X holds texts and extra_X a dense matrix"):
        append_rows(["a", "b", "c"], Y, dense, Y)
    with pytest.raises(ValueError, match="X has 2 features, but extra_X has 1"):
        append_rows(dense, Y, dense[:, :1], Y)
    with pytest.raises(ValueError, match="Y has 3 labels, but extra_Y has 2"):
        append_rows(dense, Y, dense, Y[:, :2])
    with pytest.raises(ValueError, match="extra_X has 3 rows but extra_Y has 2"):
        append_rows(dense, Y, dense, more)
