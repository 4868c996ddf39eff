"""A text vectoriser of scikit-learn and the Tfidf it is read as make the same matrix."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

import longtail as lt
from longtail.features.from_sklearn import is_sklearn_text_vectorizer, tfidf_from_sklearn

TEXTS = [
    "Type 2 diabetes, the café and a déjà vu",
    "type 1 diabetes of the tray",
    "the paper of the tray: paper!",
    "vitamin C, vitamin D and 東京 tower",
]
SAME = [
    TfidfVectorizer(),
    TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", ngram_range=(1, 2), sublinear_tf=True),
    TfidfVectorizer(token_pattern=r"\b\w{3,}\b", strip_accents="unicode", smooth_idf=False),
    TfidfVectorizer(stop_words="english", min_df=2, norm="l1", lowercase=False),
    TfidfVectorizer(stop_words=["the", "of"], max_df=0.9, use_idf=False),
    TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=2),
    TfidfVectorizer(analyzer="char", ngram_range=(1, 3), strip_accents="ascii"),
    CountVectorizer(),
    CountVectorizer(binary=True, ngram_range=(1, 3), max_df=2),
    HashingVectorizer(n_features=64, alternate_sign=False),
    HashingVectorizer(n_features=1 << 18, alternate_sign=False, norm=None, binary=True),
]


@pytest.mark.parametrize("theirs", SAME, ids=repr)
def test_the_matrix_is_the_same(theirs):
    assert is_sklearn_text_vectorizer(theirs)
    ours = tfidf_from_sklearn(theirs)
    peer = clone(theirs)
    np.testing.assert_allclose(
        ours.fit_transform(TEXTS).toarray(), peer.fit_transform(TEXTS).toarray(), rtol=1e-6
    )
    more = [text[::-1] for text in TEXTS] + ["the tray 2 C"]
    np.testing.assert_allclose(
        ours.transform(more).toarray(), peer.transform(more).toarray(), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (TfidfVectorizer(preprocessor=str.lower), "no preprocessor"),
        (TfidfVectorizer(tokenizer=str.split), "no tokenizer"),
        (CountVectorizer(vocabulary={"tray": 0}), "no vocabulary"),
        (CountVectorizer(input="filename"), "input='filename'"),
        (CountVectorizer(analyzer=str.split), "analyzer is a function"),
        (TfidfVectorizer(strip_accents=str.lower), "strip_accents is a function"),
        (TfidfVectorizer(token_pattern=r"(\w+)-\w+"), "token_pattern="),
        (HashingVectorizer(), "alternate_sign=True"),
    ],
    ids=repr,
)
def test_what_differs_is_refused_with_the_parameter(theirs, message):
    with pytest.raises(ValueError, match=message):
        tfidf_from_sklearn(theirs)


def test_only_these_classes_themselves_are_read():
    class Mine(TfidfVectorizer):
        pass

    assert not is_sklearn_text_vectorizer(Mine())
    assert not is_sklearn_text_vectorizer(lt.Tfidf())
