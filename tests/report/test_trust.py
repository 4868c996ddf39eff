"""Each warning comes when it should, and only then."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.propensity import FixedPropensity, PropensityWarning


class Raw:
    """Any object with ``inverse_`` will do as propensities, also an impossible one."""

    def __init__(self, inverse):
        self.inverse_ = np.asarray(inverse, dtype=float)


def codes(truth, scores=None, **options):
    truth = sp.csr_matrix(np.asarray(truth, dtype=float))
    answers = truth.toarray() if scores is None else scores
    options = {"k": 1, "n_resamples": 0, **options}
    report = lt.evaluate(truth, answers, **options)
    return {note.code: note.text for note in report.warnings}


def numbers(text):
    return set(re.findall(r"\d[\d,]*(?:\.\d+)?", text))


# 120 rows, three labels of 40 rows each: nothing to warn of
CLEAN = np.repeat(np.eye(3), 40, axis=0)


def test_nothing_to_warn_of():
    fitted = lt.JainPropensity().fit(CLEAN)
    assert fitted.propensity_.min() > 0.5
    bad_scores = np.roll(CLEAN, 1, axis=1)
    assert codes(CLEAN, bad_scores, propensity=fitted, train_Y=CLEAN) == {}


def test_few_rows():
    assert "3 test rows" in codes(np.eye(3))["few-rows"]
    assert re.search(r"\b1 test row\b", codes(np.eye(3)[:1])["few-rows"])


def test_unnormalised_psp_above_one():
    half = FixedPropensity().fit(propensity=[0.5, 0.5, 0.5])
    text = codes(CLEAN, propensity=half)["psp-above-one"]
    assert "200.0%" in text and "k = 1" in text and "chance" not in text
    assert "psp-above-one" not in codes(
        CLEAN, propensity=FixedPropensity().fit(propensity=[1.0, 1.0, 1.0])
    )


def test_unnormalised_psp_hardly_above_one_may_be_chance():
    scores = CLEAN.copy()
    scores[::2] = np.roll(scores[::2], 1, axis=1)  # half of the answers are right
    p = FixedPropensity().fit(propensity=[0.49] * 3)
    text = codes(CLEAN, scores, propensity=p, n_resamples=200)["psp-above-one"]
    assert "102.0%" in text and "chance" in text


def test_propensities_that_are_no_probabilities():
    found = codes(CLEAN, propensity=Raw([0.5, 0.5, 1.0]))
    assert "2 labels" in found["propensity-above-one"]


def test_propensities_that_imply_too_many_rows():
    found = codes(CLEAN, propensity=Raw([2.0, 2.0, 3.5]))
    assert re.search(r"\b1 label\b", found["propensity-too-small"])


def test_propensities_of_other_data():
    found = codes(CLEAN, propensity=lt.JainPropensity().fit(CLEAN[::2]), train_Y=CLEAN)
    assert {"60", "120"} <= numbers(found["propensity-of-other-data"])
    with pytest.warns(PropensityWarning):
        undefined = lt.JainPropensity().fit(CLEAN[:2])
    assert "propensity-undefined" in codes(CLEAN, propensity=undefined)


def test_heavy_weights():
    assert "1,000" in codes(CLEAN, propensity=Raw([1.0, 1.0, 1000.0]))["heavy-weights"]
    absent = np.column_stack([CLEAN, np.zeros(120)])  # weight on a label that never occurs
    assert "heavy-weights" not in codes(absent, propensity=Raw([1.0, 1.0, 1.0, 1000.0]))


def test_labels_unseen_in_training():
    train = CLEAN.copy()
    train[:, 2] = 0
    text = codes(CLEAN, train_Y=train)["unseen-labels"]
    assert re.search(r"\b1 label\b", text) and "33" in numbers(text)


def test_tiny_support_and_absent_labels():
    truth = np.zeros((200, 8))
    truth[:194, 0] = truth[194:197, 1] = truth[197:, 2] = 1
    found = codes(truth)
    assert {"67", "5"} <= numbers(found["tiny-support"])
    assert "5 labels" in found["labels-without-support"]
    assert {"62", "38"} <= numbers(found["labels-without-support"])


def test_k_above_the_labels_of_rows():
    found = codes(CLEAN, k=(1, 3))
    assert numbers(found["k-above-labels"]) == {"33.3", "3"}


def test_rows_without_labels():
    truth = np.vstack([CLEAN, np.zeros((3, 3))])
    assert {"3", "2.4"} <= numbers(codes(truth)["rows-without-labels"])


def test_short_answers_and_filters():
    truth = sp.csr_matrix(CLEAN)
    top = lt.TopK.from_scores(truth, 2)  # one answer a row, one empty slot
    found = codes(CLEAN, top, k=2)
    assert numbers(found["short-answers"]) == {"120", "100", "2"}
    pairs = [[0, 0], [1, 0]]
    with pytest.warns(UserWarning, match="fewer than 1"):
        found = codes(CLEAN, top.head(1), filters=pairs)
    assert "2 true pairs" in found["filtered-truth"]
    assert "before filtering" in found["short-answers"]


def test_graded_truth():
    assert "graded-truth" in codes(CLEAN * 0.5)
    assert "graded-truth" not in codes(CLEAN)
