"""Options of an answer as one object: what it refuses, and that a tagger answers by it."""

from __future__ import annotations

from typing import Any

import pytest

import longtail as lt
from longtail.answers import AnswerOptions

TEXTS = ["paper jam", "log in", "no paper", "password"] * 10
LABELS = [["printer"], ["login"], ["printer", "paper"], ["login"]] * 10


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"k": 0}, ValueError, "k must be at least 1"),
        ({"k": 2.5}, TypeError, "k must be a whole number"),
        ({"threshold": "0.5"}, TypeError, "threshold must be a number"),
        ({"threshold": True}, TypeError, "threshold must be a number"),
        ({"threshold": float("nan")}, ValueError, "threshold is NaN"),
        ({"tail": None}, TypeError, "tail must be a number from 0 to 1"),
        ({"tail": -0.1}, ValueError, "tail must lie between 0 and 1"),
        ({"tail": float("nan")}, ValueError, "tail must lie between 0 and 1"),
    ],
)
def test_what_is_refused(wrong: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        AnswerOptions(**wrong)


def test_a_tagger_answers_by_them() -> None:
    tagger = lt.Tagger().fit(TEXTS, LABELS)
    X = tagger.transform(["paper", "log"])
    how = {"k": 3, "threshold": 0.01, "exclude": ("login",), "tail": 0.5}
    expected = tagger.predict_topk(["paper", "log"], **how)
    assert tagger.rank(X, AnswerOptions(**how)) == expected
    assert tagger.rank(X, AnswerOptions(k=3)) == tagger.rank(X, 3) != expected
    with pytest.warns(DeprecationWarning, match=r"Tagger.rank takes AnswerOptions\(tail=…\)"):
        old = tagger.rank(X, 3, tail=0.5)
    assert old == tagger.rank(X, AnswerOptions(k=3, tail=0.5))
