"""Ids, names, values and scores are told apart by the same rules wherever labels or answers go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail as lt
from longtail import TopK, metrics
from longtail._forms import answers_of, rows_of
from longtail._validation import as_labels

# The same three rankings of four labels, and truth of which the first answers are 2/3 right.
IDS = [[2, 0], [1, 3], [3, 2]]
TRUTH = [[2], [0, 1], [0]]
SCORES = np.array([[0.5, 0.1, 0.9, 0.0], [0.1, 0.9, 0.0, 0.5], [0.0, 0.1, 0.5, 0.9]])
SPARSE = np.where(SCORES >= 0.5, SCORES, 0)
NAMES = ["a", "b", "c", "d"]
NAMED = [[NAMES[i] for i in row] for row in IDS]

ANSWERS = {
    "TopK": TopK.from_scores(SCORES, 2),
    "lists of ids": IDS,
    "tuples of ids": tuple(tuple(row) for row in IDS),
    "lists of NumPy ids": [list(np.array(row, np.uint16)) for row in IDS],
    "arrays of ids": [np.array(row) for row in IDS],
    "array of ids": np.array(IDS, np.int8),
    "padded array of ids": np.array([[*row, -1] for row in IDS]),
    "frame of ids": pd.DataFrame(IDS),
    "series of lists": pd.Series(IDS),
    "scores": SCORES,
    "float32 scores": SCORES.astype(np.float32),
    "lists of scores": SCORES.tolist(),
    "lists of scores, some whole": [[0.5, 0, 1, 0], [0, 1, 0, 0.5], [0, 0, 0.5, 1]],
    "frame of scores": pd.DataFrame(SCORES),
    "CSR": sp.csr_matrix(SPARSE),
    "CSC array": sp.csc_array(SPARSE),
    "integer CSR": sp.csr_matrix((SPARSE * 10).astype(int)),
    "sparse frame": pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(SPARSE)),
}
LABELS = {
    "lists": TRUTH,
    "sets": [set(row) for row in TRUTH],
    "series of lists": pd.Series(TRUTH),
    "indicator": as_labels(TRUTH, n_labels=4).toarray().astype(int),
    "boolean indicator": as_labels(TRUTH, n_labels=4).toarray().astype(bool),
    "lists of floats": as_labels(TRUTH, n_labels=4).toarray().tolist(),
    "lists of flags": as_labels(TRUTH, n_labels=4).toarray().astype(bool).tolist(),
    "frame": pd.DataFrame(as_labels(TRUTH, n_labels=4).toarray()),
    "sparse": sp.coo_matrix(as_labels(TRUTH, n_labels=4).toarray()),
}


def test_the_example_of_a_perfect_ranking() -> None:
    assert lt.evaluate([[0], [1]], [[0, 1], [1, 0]], k=1, n_resamples=0)["P@1"] == 1
    assert metrics.precision_at_k([[0], [1]], np.array([[0, 1], [1, 0]]), k=1) == 1
    assert metrics.precision_at_k([[0], [1]], [[0.0, 1.0], [1.0, 0.0]], k=1) == 0


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("answers", ANSWERS)
def test_every_form_says_the_same(answers: str, labels: str) -> None:
    top, Y = ANSWERS[answers], LABELS[labels]
    assert metrics.precision_at_k(Y, top, k=1) == pytest.approx(2 / 3)
    assert metrics.recall_at_k(Y, top, k=2) == pytest.approx(0.5)
    report = lt.evaluate(Y, top, k=(1, 2), n_resamples=0, rules={"same": top})
    assert report["P@1"] == pytest.approx(2 / 3)
    assert report.rules[1].metrics["P@2"] == pytest.approx(report["P@2"])


def test_every_metric_reads_ids_as_ids() -> None:
    """Each of the public metrics, on lists and on the ``TopK`` of the same ranking."""
    ids = TopK.from_ranking(IDS, n_labels=4)
    Y = LABELS["sparse"]
    for name in metrics.__all__:
        if not name.endswith("_at_k"):
            continue
        more = ([0.5, 0.5, 0.5, 0.5],) if name.startswith("ps_") else ()
        metric = getattr(metrics, name)
        by_lists, by_topk = metric(Y, IDS, *more, k=2), metric(Y, ids, *more, k=2)
        if name == "confusion_at_k":
            by_lists, by_topk = by_lists.true_positives.tolist(), by_topk.true_positives.tolist()
        assert by_lists == by_topk, name
    expected = metrics.filter_predictions(ids, [[0, 2]]).indices
    np.testing.assert_array_equal(metrics.filter_predictions(IDS, [[0, 2]]).indices, expected)


@pytest.mark.parametrize("labels", LABELS)
def test_fit_reads_labels_by_the_same_rules(labels: str) -> None:
    prior = lt.baselines.Popularity().fit(np.eye(3), LABELS[labels]).prior_
    np.testing.assert_allclose(prior[:3], [2 / 3, 1 / 3, 1 / 3])


AMBIGUOUS = [[[1, 0], [0, 1]], [[0, 1]], [(1, 1), (0, 0)], [[0, 1, 1], [1, 0, 0]]]


@pytest.mark.parametrize("Y", AMBIGUOUS)
def test_ids_that_could_be_indicators_are_refused(Y: Any) -> None:
    message = r"ambiguous.*indicator matrix.*np.asarray.*set\(row\)"
    with pytest.raises(ValueError, match=message):
        lt.baselines.Popularity().fit(np.eye(len(Y)), Y)
    with pytest.raises(ValueError, match=message):
        metrics.recall_at_k(Y, np.ones(np.shape(Y)), k=1)
    assert as_labels(np.asarray(Y)).shape == np.shape(Y)
    assert as_labels([set(row) for row in Y]).nnz == sum(len(set(row)) for row in Y)


def test_ids_of_scikit_learn_s_svmlight_reader_are_ids() -> None:
    for Y in ([(3.0, 1.0), (2.0,)], [(3.0,), (1.0,)]):  # of different lengths, or above 1
        expected = as_labels([[int(j) for j in row] for row in Y])
        assert (as_labels(Y) != expected).nnz == 0
    assert as_labels([[1.0, 0.0], [0.5, 1.0]]).toarray().tolist() == [[1.0, 0.0], [0.5, 1.0]]
    with pytest.raises(ValueError, match="has 1 numbers"):
        as_labels([[0.5, 1.0], [0.5]])


def test_a_known_number_of_labels_settles_it() -> None:
    top = TopK([[0], [4]], [[1.0], [1.0]], n_labels=5)
    assert metrics.precision_at_k([[0, 1], [1, 0]], top, k=1) == 0.5
    with pytest.raises(ValueError, match="ambiguous"):  # no list of ids names a label twice
        metrics.precision_at_k([[0, 1], [1, 1]], top, k=1)


@pytest.mark.parametrize(
    ("top", "error", "message"),
    [
        ([[0, 1, 0], [1, 0, 0]], ValueError, r"row 0 names a label twice.*dtype=float"),
        (np.array([[0, 1, 0], [1, 0, 0]]), ValueError, r"twice.*scipy.sparse.csr_matrix"),
        (np.array([[7], [0]]), ValueError, r"label id 7, but Y_true has 3.*label ids"),
        ([[-2], [0]], ValueError, "between -1"),
        ([[2**70], [0]], ValueError, "below 2"),
        ([{0, 1}, {1}], TypeError, "no order"),
        ([[True, False], [False, True]], TypeError, r"do not rank.*csr_matrix"),
        (np.eye(2, dtype=bool), TypeError, "do not rank"),
        ([[0, "a"], [1]], TypeError, r"top\[0\] holds 'a'"),
        ([[0.5, 0.1, 0.1], [0.5]], ValueError, r"top\[1\] has 1 numbers where top\[0\] has 3"),
        ([[("a", 0.5)], [("b", 0.4)]], TypeError, r"top\[0\] holds \('a', 0.5\)"),
        ([{0: 0.9}, {1: 0.8}], TypeError, r"top\[0\] is \{0: 0.9\}"),
        ([0, 1], TypeError, r"top\[0\] is the number 0"),
        ([["a"], ["b"]], TypeError, "names in all of them"),
        ([None, [1]], TypeError, r"top\[0\] is None"),
        (np.ma.masked_less(np.array([[0, 1], [1, 0]]), 1), ValueError, "masked"),
        (pd.DataFrame({"a": [1, None], "b": [0, 1], "c": [2, 2]}), ValueError, "NaN"),
    ],
)
def test_answers_that_are_refused(top: Any, error: type[Exception], message: str) -> None:
    Y = np.array([[1, 0, 0], [0, 1, 0]])
    with pytest.raises(error, match=message):
        metrics.precision_at_k(Y, top, k=1)
    with pytest.raises(error, match=message):
        lt.evaluate(Y, top, k=1, n_resamples=0)


def test_a_rule_with_answers_that_are_refused_is_named() -> None:
    for other, error in ((np.eye(2, dtype=bool), TypeError), ([[0, 0], [1, 0]], ValueError)):
        with pytest.raises(error, match=r"rules\['other'\]: "):
            lt.evaluate(np.eye(2), np.eye(2), k=1, n_resamples=0, rules={"other": other})


def test_matches_keep_their_truth() -> None:
    truth = [["a"], ["b"]]
    matches = metrics.match(truth, [["a", "b"], ["a", "b"]], 2)
    report = lt.evaluate(truth, matches, k=1, n_resamples=0, label_names=["a", "b"])
    assert report["P@1"] == metrics.precision_at_k(truth, matches, k=1) == 0.5


def test_a_table_of_ids_is_no_indicator_matrix() -> None:
    with pytest.raises(ValueError, match=r"holds the value 3.*Y.tolist\(\)"):
        lt.baselines.Popularity().fit(np.eye(2), np.array([[0, 3], [1, 2]]))
    with pytest.raises(ValueError, match=r"Y\[1\] has 1 numbers where Y\[0\] has 2.*whole numbers"):
        as_labels([[0.0, 0.5], [1.0]])
    with pytest.raises(TypeError, match=r"Y\[1\] holds None"):
        as_labels([[1], [None]])


@pytest.mark.parametrize("eta", [[[0, 1], [1, 0]], np.eye(2, dtype=int), [["a"], ["b"]]])
def test_decision_rules_want_probabilities_and_not_labels(eta: Any) -> None:
    with pytest.raises(TypeError, match=r"eta holds label (ids|names), without probabilities"):
        lt.decide.TopKRule(k=1).select(eta)
    with pytest.raises(TypeError, match="without probabilities"):
        lt.tradeoff(eta, k=1)
    assert lt.decide.TopKRule(k=1).select(np.eye(2)).indices.tolist() == [[0], [1]]
    assert lt.decide.TopKRule(k=1).select(sp.identity(2, dtype=int)).indices.tolist() == [[0], [1]]


def test_ranks_are_no_probabilities() -> None:
    for k in (1, 2):
        with pytest.raises(ValueError, match="no probabilities"):
            metrics.expected_calibration_error(TRUTH, IDS, k=k)


def test_rows_of_different_lengths_are_complete() -> None:
    ragged = [[2, 0], [], [3]]
    assert metrics.precision_at_k(TRUTH, ragged, k=5) == pytest.approx(1 / 15)
    with pytest.raises(ValueError, match="k is 5, but the ranking holds 2 labels per row"):
        metrics.precision_at_k(TRUTH, IDS, k=5)
    nothing = TopK.from_ranking([[], []])
    assert nothing.indices.tolist() == [[-1], [-1]] and len(TopK.from_ranking([])) == 0


def test_one_answer_per_row() -> None:
    for top in (np.array([2, 1, 3]), pd.Series([2, 1, 3])):
        assert metrics.precision_at_k(TRUTH, top, k=1) == pytest.approx(2 / 3)
        assert metrics.precision_at_k(top, np.eye(4)[[2, 1, 0]], k=1) == pytest.approx(2 / 3)


def test_ids_take_their_width_from_the_truth_or_from_each_other() -> None:
    assert metrics.match(TRUTH, IDS).n_labels == 4
    assert metrics.match(np.eye(9)[[2, 1, 0]], IDS).n_labels == 9
    report = lt.evaluate(TRUTH, IDS, k=1, label_names=[*NAMES, "e"], n_resamples=0)
    assert report.facts.n_labels == 5


def test_names() -> None:
    truth = [[NAMES[i] for i in row] for row in TRUTH]
    for Y in (truth, [set(row) for row in truth], pd.Series(truth)):
        assert metrics.recall_at_k(Y, NAMED, k=2) == pytest.approx(0.5)
        assert lt.evaluate(Y, NAMED, k=1, n_resamples=0)["P@1"] == pytest.approx(2 / 3)
    assert metrics.macro_recall_at_k(truth, NAMED, k=1) == metrics.macro_recall_at_k(
        TRUTH, IDS, k=1
    )
    # With names for the ids, either side may use them, and so may the rules.
    names = [*NAMES, "e"]
    for Y, top in (
        (truth, IDS),
        (TRUTH, NAMED),
        (truth, ANSWERS["TopK"]),
        (truth, np.array(NAMED)),
    ):
        if isinstance(top, TopK):
            top = TopK(top.indices, top.scores, n_labels=5)
        report = lt.evaluate(Y, top, k=2, label_names=names, n_resamples=0, rules={"r": NAMED})
        assert report["R@2"] == pytest.approx(0.5) and report.facts.n_labels == 5
        assert report.rules[1].metrics["R@2"] == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"top\[0\]: 'z' is not one of the 5 label names"):
        lt.evaluate(truth, [["z"]] * 3, k=1, label_names=names)
    with pytest.raises(TypeError, match="not a label id"):
        metrics.recall_at_k(truth, SCORES, k=1)
    with pytest.raises(TypeError, match="names in all of them"):
        metrics.recall_at_k(TRUTH, NAMED, k=1)


def test_the_report_of_names_lists_them() -> None:
    report = lt.evaluate([["cat"], ["dog"]], [["cat"], ["cat"]], k=1, n_resamples=0)
    assert [label.name for label in report.missed] == ["dog"]


@given(
    rows=st.lists(
        st.lists(st.one_of(st.integers(0, 5), st.floats(0, 1), st.text(max_size=2), st.booleans())),
        max_size=4,
    )
)
@settings(max_examples=150, deadline=None)
def test_a_form_or_a_reason(rows: list[list[Any]]) -> None:
    """Whatever lists hold, they are read in one way or refused with a message that says where."""
    kinds = {type(item) for row in rows for item in row}
    if len(kinds - {int, float}) > (0 if kinds & {int, float} else 1):
        with pytest.raises(TypeError, match=r"Y\[\d+\] holds"):
            rows_of(rows, "Y")
        return
    found = rows_of(rows, "Y")
    assert found is not None
    expected = {float: "values", str: "names", bool: "flags"}
    assert found.form == next((form for kind, form in expected.items() if kind in kinds), "ids")
    if found.form == "flags":
        with pytest.raises(TypeError, match="do not rank"):
            answers_of(rows)
