"""A tagger knows which texts it was trained on, and its reports say so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tagger_cases import tickets

import longtail as lt
from longtail import persist

TEXTS, LABELS = tickets(200, seed=0)
NEW, NEW_LABELS = tickets(100, seed=1)


@pytest.fixture(scope="module")
def tagger() -> lt.Tagger:
    return lt.Tagger(calibrate=False).fit(TEXTS, LABELS)


def codes(report: lt.report.Report) -> list[str]:
    return [note.code for note in report.warnings]


def test_training_texts_are_recognised(tagger: lt.Tagger) -> None:
    report = tagger.evaluate(TEXTS, LABELS, n_resamples=0)
    assert report.facts.trained_rows == 200
    assert codes(report)[0] == "trained-on"
    assert "All 200 test rows are among the rows this model was trained on" in str(report)
    assert report.to_dict()["data"]["trained_rows"] == 200
    assert "All 200 test rows" in report.to_html()


def test_new_texts_raise_no_alarm(tagger: lt.Tagger) -> None:
    report = tagger.evaluate(NEW, NEW_LABELS, n_resamples=0)
    assert report.facts.trained_rows == 0 and "trained-on" not in codes(report)


def test_a_mixture_says_what_is_left_without_them(tagger: lt.Tagger) -> None:
    wrong = [["phone"]] * len(NEW)  # so that the other rows have a number of their own
    report = tagger.evaluate(TEXTS[:60] + NEW, LABELS[:60] + wrong, k=1, n_resamples=0)
    alone = tagger.evaluate(NEW, wrong, k=1, n_resamples=0)
    (note,) = [note for note in report.warnings if note.code == "trained-on"]
    assert note.text.startswith("60 of 160 test rows (37.5%)") and note.concerns == ("all",)
    assert f"On the 100 other rows P@1 is {100 * alone['P@1']:.2f}%" in note.text


def test_it_is_saved_and_old_models_say_nothing(tagger: lt.Tagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    again = lt.load(tmp_path / "model")
    assert again.trained_on(TEXTS).hits.all() and again.trained_on(NEW).n_rows == 0
    state = tagger._get_state()  # as versions before fingerprints saved it
    del state.arrays["seen_counts"], state.arrays["seen_remainders"], state.meta["seen_step"]
    persist.save(tmp_path / "old", state)
    old = lt.load(tmp_path / "old")
    assert old.trained_on(TEXTS) is None and old.predict(NEW, k=1) == tagger.predict(NEW, k=1)
    report = old.evaluate(TEXTS, LABELS, n_resamples=0)
    assert report.facts.trained_rows is None and "trained-on" not in codes(report)
    old.save(tmp_path / "older")
    assert lt.load(tmp_path / "older").trained_on(TEXTS) is None


def test_fields_count_as_the_model_sees_them() -> None:
    rows = [{"title": text.split()[0], "text": text, "id": str(i)} for i, text in enumerate(TEXTS)]
    weights = {"title": 2.0, "text": 1.0, "id": 0.0}
    tagger = lt.Tagger(field_weights=weights, calibrate=False).fit(rows, LABELS)
    other_ids = [{**row, "id": "x"} for row in rows]
    assert tagger.trained_on(other_ids).hits.all()  # a field without weight is not seen
    moved = [{**row, "title": "", "text": f"{row['title']} {row['text']}"} for row in rows]
    assert tagger.trained_on(moved).n_rows == 0


def test_features_and_empty_rows() -> None:
    data = lt.data.make_longtail(n=150, d=80, L=10, n_test=60, random_state=0)
    names = [str(i) for i in range(10)]
    X = data.train.X.tolil()
    X[0] = 0
    X = X.tocsr()
    tagger = lt.Tagger(calibrate=False).fit(X, data.train.Y, label_names=names)
    X.eliminate_zeros()
    hits = tagger.trained_on(X).hits
    assert not hits[0] and hits[1:].all()  # an empty row is like any other empty row
    assert tagger.trained_on(X.toarray()).hits.tolist() == hits.tolist()
    assert tagger.trained_on(data.test.X).n_rows == 0
    blank = lt.Tagger(calibrate=False).fit([*TEXTS, " "], [*LABELS, ["mail"]])
    assert blank.trained_on(["", "  ", TEXTS[0]]).hits.tolist() == [False, False, True]
    with pytest.raises(TypeError, match=r"texts\[1\] must be a string"):
        blank.trained_on(["a", None])


def test_taught_texts_are_known_too(tagger: lt.Tagger) -> None:
    texts = ["fax machine line busy", "the fax is out of paper", "send the fax again"]
    growing = lt.Tagger(calibrate=False).fit(TEXTS, LABELS)
    growing.add_labels([*texts, *NEW], [["fax"]] * 3 + NEW_LABELS)
    assert growing.trained_on([*texts, *NEW, *TEXTS]).hits.all()
    assert tagger.trained_on(texts).n_rows == 0


def test_measured_among_more_labels_than_it_knows(tagger: lt.Tagger) -> None:
    among = sorted([*tagger.label_names, "fax", "modem"])
    labels = [["printer", "fax"], ["fax"]]
    truth = tagger.truth(labels, among=among)
    top = tagger.predict_topk(["paper jam", "wifi cable"], 2)
    report = tagger.measure(truth, top, k=1, n_resamples=0)
    assert report["P@1"] == 0.5 and report["R@1"] == 0.25  # "fax" counts as missed
    assert report.facts.unseen_labels == 1 and report.facts.n_labels == len(among)
    plain = tagger.measure(tagger.truth(labels), top, k=1, n_resamples=0)
    assert plain["R@1"] == 0.5
    curve = tagger.lean_curve(["paper jam", "wifi cable"], truth, k=1)
    assert curve[0]["R@1"] == 0.25


def test_the_same_bits_for_any_number_of_threads() -> None:
    one = lt.Tagger(n_jobs=1, calibrate=False).fit(TEXTS, LABELS).seen_
    two = lt.Tagger(n_jobs=2, calibrate=False).fit(TEXTS[::-1], LABELS[::-1]).seen_
    assert np.array_equal(one.remainders, two.remainders)
