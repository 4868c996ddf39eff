"""Many texts in one call are worked on in blocks: same answers, bit for bit, and less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import longtail as lt
from longtail.tagger import answering

WORDS = [f"word{i}" for i in range(12)]


def some_texts(n: int = 60) -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(0)
    drawn = [rng.choice(WORDS, size=3, replace=False).tolist() for _ in range(n)]
    return [" ".join(words) for words in drawn], [words[:2] for words in drawn]


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Texts are taken 7 at a time; how many came in each call of ``Tfidf.transform``."""
    seen: list[int] = []
    transform = lt.Tfidf.transform

    def counted(self: lt.Tfidf, texts: Any) -> Any:
        seen.append(len(texts))
        return transform(self, texts)

    monkeypatch.setattr(answering, "BLOCK", 7)
    monkeypatch.setattr(lt.Tfidf, "transform", counted)
    return seen


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"threshold": 0.3},
        {"tail": 0.7},
        {"exclude": ["word3"], "k": 30},
        {"include": ["word1", "word2"], "tail": 0.2},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "rule", [None, lt.BlockCoordinateAscent("macro_f1", k=2, random_state=0)], ids=["plain", "rule"]
)
def test_blocks_give_the_answers_of_one_call(
    lengths: list[int], monkeypatch: pytest.MonkeyPatch, rule: Any, how: dict[str, Any]
) -> None:
    texts, labels = some_texts()
    tagger = lt.Tagger(model="xr-linear", rule=rule).fit(texts, labels)
    lengths.clear()
    top = tagger.predict_topk(texts, **how)
    assert lengths == [7] * 8 + [4]
    monkeypatch.setattr(answering, "BLOCK", 1000)
    whole = tagger.predict_topk(texts, **how)
    assert lengths[9:] == [60]
    assert top.n_labels == whole.n_labels == 12
    assert top.indices.tobytes() == whole.indices.tobytes()
    assert top.scores.tobytes() == whole.scores.tobytes()
    assert tagger.rank(tagger.transform(texts), lt.answers.AnswerOptions(**how)) == whole


def test_blocks_of_fields(lengths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = some_texts()
    columns = {"title": texts, "body": texts[::-1]}
    tagger = lt.Tagger(field_weights={"title": 2.0, "body": 0.5}).fit(columns, labels)
    lengths.clear()
    answers = tagger.predict(columns)
    assert max(lengths) == 7 and sum(lengths) == 120
    monkeypatch.setattr(answering, "BLOCK", 1000)
    assert tagger.predict(columns) == answers


def test_what_is_no_text_is_named_by_its_place_among_all(lengths: list[int]) -> None:
    texts, labels = some_texts()
    tagger = lt.Tagger().fit(texts, labels)
    with pytest.raises(TypeError, match="text 41 is of type NoneType: replace missing texts"):
        tagger.predict([*texts[:41], None, *texts[42:]])


def test_rows_and_texts_that_models_read_are_not_cut(lengths: list[int]) -> None:
    texts, labels = some_texts()
    tagger = lt.Tagger(model="xr-linear").fit(texts, labels)
    X = tagger.transform(texts)
    lengths.clear()
    assert tagger.predict(X) == tagger.predict(texts)
    assert lengths == [7] * 8 + [4]
    own = lt.Tagger(model="xr-linear", vectorizer=Whole()).fit(texts, labels)
    lengths.clear()
    own.predict(texts)
    assert lengths == [60]  # nobody promised that its rows are made one by one


class Whole(lt.Tfidf):
    """A vectoriser of the user's."""


def test_rows_that_overflow_are_refused_as_ever() -> None:
    texts, labels = some_texts()
    tagger = lt.Tagger(model="xr-linear", vectorizer=lt.Tfidf(norm=None)).fit(texts, labels)
    tagger.vectorizer_.idf_ = np.full_like(tagger.vectorizer_.idf_, 3e38)
    with pytest.raises(ValueError, match="X holds"):
        tagger.predict(["word1 word1 word2 word2"])
