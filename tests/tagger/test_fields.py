from __future__ import annotations

import numpy as np
import pytest
from tagger_cases import tickets

import longtail as lt
from longtail.tagger.fields import as_columns, rows_of

TEXTS, LABELS = tickets(120)
RECORDS = [{"title": text.split()[0], "body": text} for text in TEXTS]


def test_rows_are_weighted_sums_of_the_fields() -> None:
    v = lt.Tfidf(min_df=1).fit(TEXTS)
    columns = as_columns(RECORDS[:5], None)
    X = rows_of(columns, v, {"title": 2.0, "body": 0.5})
    expected = 2.0 * v.transform(columns["title"]) + 0.5 * v.transform(columns["body"])
    np.testing.assert_allclose(X.toarray(), expected.toarray(), rtol=1e-6)


def test_mapping_and_records_are_the_same() -> None:
    columns = {"title": [r["title"] for r in RECORDS], "body": [r["body"] for r in RECORDS]}
    weights = {"title": 2, "body": 1}
    one = lt.Tagger(field_weights=weights).fit(RECORDS, LABELS)
    two = lt.Tagger(field_weights=weights).fit(columns, LABELS)
    assert one.predict(RECORDS[:9]) == two.predict({k: v[:9] for k, v in columns.items()})
    assert one.fields_ == ["title", "body"]


def test_a_weight_of_zero_leaves_a_field_out() -> None:
    noisy = [{**record, "noise": "printer paper jam"} for record in RECORDS]
    weights = {"title": 1.0, "body": 1.0, "noise": 0.0}
    tagger = lt.Tagger(field_weights=weights, vectorizer=lt.Tfidf(min_df=1)).fit(noisy, LABELS)
    with_noise = tagger.predict([{"body": "wifi router", "noise": "paper jam"}], k=1)
    assert with_noise == tagger.predict([{"body": "wifi router"}], k=1)


def test_saved_fields_come_back(tmp_path: object) -> None:
    tagger = lt.Tagger(field_weights={"title": 2, "body": 1}).fit(RECORDS, LABELS)
    tagger.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    assert again.predict(RECORDS[:5]) == tagger.predict(RECORDS[:5])
    assert again.predict(["paper jam"], k=1)[0][0][0] == "printer"  # a plain text will do
    explanation = again.explain({"title": "paper", "body": "jam in the tray"}, "printer")
    assert [explanation.text[a:b] for a, b, w in explanation.spans if w > 0][:2] == ["paper", "jam"]


@pytest.mark.parametrize(
    ("texts", "match"),
    [
        ([{"title": "a"}, "b"], "other rows have fields"),
        ([{"other": "a"}], "none of the fields"),
        ({"title": ["a"]}, "no field 'body'"),
        ({"title": ["a"], "body": ["a", "b"]}, "different numbers"),
        ([{"title": 3, "body": ""}], "must be a string"),
    ],
)
def test_refusals(texts: object, match: str) -> None:
    with pytest.raises((TypeError, ValueError), match=match):
        lt.Tagger(field_weights={"title": 1, "body": 1}).fit(texts, [["x"]] * 2)


@pytest.mark.parametrize(
    "weights", [{}, [1, 2], {"title": -1}, {"title": "much"}, {3: 1}, {"title": 0}, {"title": True}]
)
def test_weights_are_checked(weights: object) -> None:
    with pytest.raises((TypeError, ValueError), match="field"):
        lt.Tagger(field_weights=weights).fit(RECORDS, LABELS)


def test_fields_and_plain_texts_do_not_mix() -> None:
    with pytest.raises(ValueError, match="the texts have no fields"):
        lt.Tagger(field_weights={"title": 1}).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="without fields"):
        lt.Tagger().fit(TEXTS, LABELS).predict(RECORDS[:1])
