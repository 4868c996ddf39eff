from __future__ import annotations

import numpy as np
import pytest
from tagger_cases import tickets

import longtail as lt

TEXTS, LABELS = tickets()


@pytest.fixture(scope="module")
def tagger() -> lt.Tagger:
    return lt.Tagger().fit(TEXTS, LABELS)


def test_it_is_the_report_on_the_same_answers(tagger: lt.Tagger) -> None:
    vocabulary = lt.answers.Vocabulary.from_lists(LABELS)
    Y = vocabulary.encode(LABELS)
    report = tagger.evaluate(TEXTS, LABELS, n_resamples=0)
    plain = lt.evaluate(
        Y,
        tagger.predict_topk(TEXTS, 5),
        propensity=lt.JainPropensity().fit(Y),
        train_Y=Y,
        n_resamples=0,
    )
    assert {m: report[m] for m in report} == {m: plain[m] for m in plain}
    assert [b.max_count for b in report.bins] == [b.max_count for b in plain.bins]
    assert report.facts.n_train_rows == len(TEXTS)


def test_unknown_labels_are_counted_and_said(tagger: lt.Tagger) -> None:
    report = tagger.evaluate(
        ["paper jam", "wifi cable"], [["printer", "fax"], ["fax", "modem"]], k=1, n_resamples=0
    )
    note = report.warnings[0]
    assert note.code == "unknown-labels"
    assert "3 of 4 true labels (75.0%), in 2 rows" in note.text
    assert "R@1 is 25.00%" in note.text  # one of two found, and none of two
    assert report["R@1"] == 0.5


def test_columns_of_a_matrix_are_matched_by_name(tagger: lt.Tagger) -> None:
    names = ["fax", "printer", "mail"]
    truth = tagger.truth(np.array([[1, 1, 0], [0, 0, 1]], np.float32), names, unknown=[0, 2])
    assert truth.unknown.tolist() == [1, 2]
    decoded = tagger.vocabulary_.decode(truth.Y)
    assert decoded == [["printer"], ["mail"]]


def test_known_labels_are_not_warned_of(tagger: lt.Tagger) -> None:
    report = tagger.evaluate(TEXTS, LABELS, n_resamples=0)
    assert "unknown-labels" not in [note.code for note in report.warnings]


def test_rows_must_agree(tagger: lt.Tagger) -> None:
    with pytest.raises(ValueError, match="must describe the same rows"):
        tagger.evaluate(TEXTS[:3], LABELS[:2])
