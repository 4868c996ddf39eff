"""What a tagger takes as a vectoriser, and what it refuses before it trains."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import make_pipeline
from tagger_cases import tickets

import longtail as lt
from longtail.tagger import fitting

TEXTS, LABELS = tickets(80)


class Lengths:
    """A plain object: how often each of some letters occurs, dense, and nothing else."""

    fitted = False

    def fit_transform(self, texts: list[str]) -> np.ndarray:
        self.fitted = True
        return self.transform(texts)

    def transform(self, texts: list[str]) -> np.ndarray:
        assert self.fitted
        return np.array([[text.count(letter) for letter in "abcdefghij"] for text in texts])


class NeverTrained(lt.OneVsAll):
    def fit(self, *arguments: Any, **options: Any) -> Any:
        raise AssertionError("training began")


@pytest.mark.parametrize(
    ("vectorizer", "reason"),
    [
        (Lengths(), "Lengths is not an estimator of longtail"),
        (TfidfVectorizer(tokenizer=str.split, token_pattern=None), "Tfidf has no tokenizer"),
        (TfidfVectorizer(vocabulary=["paper"]), "Tfidf has no vocabulary"),
        (TfidfVectorizer(token_pattern=r"[a-z]+"), "token_pattern="),
        (HashingVectorizer(), "alternate_sign=True"),
        (make_pipeline(TfidfVectorizer()), "Pipeline is not an estimator"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_saved_is_refused_before_training(vectorizer: Any, reason: str) -> None:
    tagger = lt.Tagger(vectorizer=vectorizer, model=NeverTrained())
    with pytest.raises(TypeError, match="vectorizer cannot be saved") as refused:
        tagger.fit(TEXTS, LABELS)
    assert reason in str(refused.value) and "savable=False" in str(refused.value)


def test_foreign_models_are_refused_before_training() -> None:
    class Mine:
        def fit(self, X: Any, Y: Any) -> Mine:
            raise AssertionError("training began")

        def predict_topk(self, X: Any, k: int) -> Any: ...

    with pytest.raises(TypeError, match="the model cannot be saved: Mine is not"):
        lt.Tagger(model=Mine()).fit(TEXTS, LABELS)
    inside = lt.Ensemble(models=[lt.OneVsAll(), Mine()])
    with pytest.raises(TypeError, match="the model cannot be saved: it holds"):
        lt.Tagger(model=inside).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    "vectorizer",
    [
        Lengths(),
        TfidfVectorizer(tokenizer=str.split, token_pattern=None),
        make_pipeline(CountVectorizer(), TfidfTransformer()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_object_will_do_if_the_tagger_is_never_saved(vectorizer: Any, tmp_path: Path) -> None:
    tagger = lt.Tagger(vectorizer=vectorizer, savable=False, calibrate=False).fit(TEXTS, LABELS)
    assert tagger.score(TEXTS, LABELS) > 0.6
    assert not getattr(vectorizer, "fitted", False)  # what is given stays as it was
    assert type(vectorizer).__name__ in tagger.choice_
    with pytest.raises(TypeError, match="vectorizer cannot be saved"):
        tagger.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_fields_and_explanations_of_a_plain_object() -> None:
    rows = [{"title": text[:9], "body": text} for text in TEXTS]
    tagger = lt.Tagger(vectorizer=Lengths(), savable=False).fit(rows, LABELS)
    assert len(tagger.predict(rows[:2])) == 2
    with pytest.raises(TypeError, match="Lengths has no get_feature_names_out"):
        tagger.explain(rows[0])


def test_hashed_terms_have_no_names_to_explain_by() -> None:
    tagger = lt.Tagger(vectorizer={"n_features": 64}).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="hashed columns have no names"):
        tagger.explain(TEXTS[0])


@pytest.mark.parametrize(
    ("vectorizer", "error", "match"),
    [
        (object(), TypeError, "must have fit_transform and transform"),
        ("tfidf", TypeError, "must have fit_transform and transform"),
        (lt.Tfidf, TypeError, r"got the class: write Tfidf\(\)"),
    ],
)
def test_what_is_no_vectoriser_is_refused(vectorizer: Any, error: type, match: str) -> None:
    with pytest.raises(error, match=match):
        lt.Tagger(vectorizer=vectorizer).fit(TEXTS, LABELS)


def test_rows_that_are_lost_are_noticed() -> None:
    class Short(Lengths):
        def transform(self, texts: list[str]) -> np.ndarray:
            return super().transform(texts)[1:]

    with pytest.raises(ValueError, match="texts has 80 rows but what the vectorizer returned"):
        lt.Tagger(vectorizer=Short(), savable=False).fit(TEXTS, LABELS)


def test_objects_that_cannot_be_copied_say_so() -> None:
    class Stubborn(Lengths):
        def __deepcopy__(self, memo: Any) -> Any:
            raise RuntimeError("no")

    with pytest.raises(TypeError, match=r"cannot be copied \(no\)"):
        fitting.copied(Stubborn())


def test_a_vectoriser_of_scikit_learn_is_read_as_tfidf_and_saved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", stop_words=["the"])
    with caplog.at_level(logging.INFO, logger="longtail.tagger"):
        tagger = lt.Tagger(vectorizer=theirs, model="xr-linear").fit(TEXTS, LABELS)
    X = TfidfVectorizer(**theirs.get_params()).fit_transform(TEXTS)
    np.testing.assert_allclose(tagger.transform(TEXTS).toarray(), X.toarray(), atol=1e-6)
    assert not hasattr(theirs, "vocabulary_")
    assert "Tfidf(ngram_range=(1, 2)" in caplog.text
    tagger.save(tmp_path / "model")
    again = lt.load(tmp_path / "model")
    assert again.predict(TEXTS[:5]) == tagger.predict(TEXTS[:5])
