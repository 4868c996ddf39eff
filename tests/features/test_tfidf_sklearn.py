"""With the same parameters, Tfidf is scikit-learn's TfidfVectorizer: on any text that can be."""

# ruff: noqa: RUF001

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import (
    ENGLISH_STOP_WORDS,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn_peer import assert_same_matrix, compare, in_sklearn

import longtail as lt

# Case with context or expansion, marks, ligatures, every kind of space, digits that are letters to
# re, scripts of 1 to 4 bytes, a lone surrogate, NUL.
ODD = "ΣσςİıßẞKÅǅﬁﷺ½²٣Ⅷªº_-'. \t\n\r\x0b\x1c\x1f\x85\xa0\u1680\u2003\u2028\u3000\u200b\u0301\u0345"
ODD += "aAbBéÉe\u0301ñΩωаЯאبक東京한글\uac01\U0001d400\U00020000\U0001f600\ud800\udfff\x00\x7f\xad"
CHARACTERS = st.sampled_from(ODD) | st.characters(exclude_categories=[]) | st.sampled_from("ab ")
TEXTS = st.lists(st.text(CHARACTERS, max_size=40), max_size=8)
RANGES = st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 3), (1, 4), (3, 5), (4, 9)])


def options(**more):
    return st.fixed_dictionaries(
        {
            "ngram_range": RANGES,
            "lowercase": st.booleans(),
            "strip_accents": st.sampled_from([None, "unicode", "ascii"]),
            "min_word_length": st.sampled_from([1, 2, 3, 6]),
            **more,
        }
    )


@settings(max_examples=250, deadline=None)
@given(TEXTS, options(analyzer=st.sampled_from(["word", "char", "char_wb"])))
def test_any_text_is_cut_the_same_way(texts, params):
    analyze = TfidfVectorizer(**in_sklearn(params)).build_analyzer()
    ours = lt.Tfidf(**params)
    for text in [*texts, "".join(texts), " ".join(texts) * 3]:
        assert ours.analyze(text) == analyze(text)


@settings(max_examples=120, deadline=None)
@given(
    TEXTS,
    TEXTS,
    options(
        analyzer=st.sampled_from(["word", "char", "char_wb"]),
        min_df=st.sampled_from([1, 2, 3, 0.0, 0.3, 0.5]),
        max_df=st.sampled_from([1.0, 0.7, 2, 4]),
        binary=st.booleans(),
        sublinear_tf=st.booleans(),
        use_idf=st.booleans(),
        smooth_idf=st.booleans(),
        norm=st.sampled_from(["l2", "l1", None]),
    ),
)
def test_any_texts_give_the_same_matrix(fit, transform, params):
    compare(fit, transform, **params)


WORDS = st.sampled_from(["aa", "b", "cc", "d", "ee", "of", "the", "東京", "東", "2", "straße"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(WORDS).map(" ".join)))
def test_repeated_words_give_the_same_matrix(texts):
    params = {"min_df": 1, "stop_words": ["of", "the", "ee", "b"]}
    for ngrams in ((1, 1), (1, 3)):
        for length in (1, 2):
            compare(texts, texts[::-1], ngram_range=ngrams, min_word_length=length, **params)


PARAMS = [
    {},
    {"ngram_range": (1, 2)},
    {"ngram_range": (1, 2), "min_word_length": 1},
    {"min_word_length": 4},
    {"ngram_range": (2, 3), "min_df": 1},
    {"ngram_range": (1, 2), "max_df": 0.05, "min_df": 0.001},
    {"stop_words": sorted(ENGLISH_STOP_WORDS), "ngram_range": (1, 2), "norm": "l1"},
    {"lowercase": False, "sublinear_tf": False, "smooth_idf": False},
    {"strip_accents": "unicode", "binary": True},
    {"strip_accents": "ascii", "use_idf": False, "norm": None},
    {"analyzer": "char", "ngram_range": (2, 3), "min_df": 3},
    {"analyzer": "char_wb", "ngram_range": (3, 5), "strip_accents": "unicode"},
]


@pytest.mark.parametrize("params", PARAMS, ids=str)
def test_real_texts_give_the_same_matrix(real_texts, params):
    many = 300 if params.get("analyzer", "word") != "word" else 1000
    compare(real_texts[:many], real_texts[many : many + 200], **params)


def test_max_features_keeps_what_occurs_most(real_texts):
    # scikit-learn leaves ties to an unstable sort: ask for a number that does not cut through one.
    ours = lt.Tfidf(ngram_range=(1, 2), sublinear_tf=False, use_idf=False, norm=None)
    counts = np.asarray(ours.fit_transform(real_texts[:500]).sum(axis=0)).ravel()
    descending = np.sort(counts)[::-1]
    cut = int(np.flatnonzero(descending[:-1] != descending[1:])[-3]) + 1
    compare(real_texts[:500], real_texts[500:600], ngram_range=(1, 2), max_features=cut)
    compare(real_texts[:500], real_texts[500:600], ngram_range=(1, 2), max_features=10**6)


def test_ties_of_max_features_go_to_the_first_term():
    texts = ["bb aa cc dd dd", "bb aa cc dd"]
    ours = lt.Tfidf(max_features=2).fit(texts)
    assert ours.get_feature_names_out().tolist() == ["aa", "dd"]
    ours = lt.Tfidf(max_features=2, binary=True).fit(texts)  # then texts count, not occurrences
    assert ours.get_feature_names_out().tolist() == ["aa", "bb"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(st.sampled_from(ODD.replace("\ud800", "").replace("\udfff", ""))), min_size=1),
    options(
        analyzer=st.sampled_from(["word", "char", "char_wb"]), n=st.sampled_from([1, 7, 1 << 20])
    ),
    st.booleans(),
)
def test_hashing_is_sklearns(texts, params, binary):
    n = params.pop("n")
    theirs = HashingVectorizer(
        n_features=n, alternate_sign=False, norm=None, binary=binary, **in_sklearn(params)
    )
    counts = theirs.transform(texts)
    ours = lt.Tfidf(n_features=n, min_df=0.0, sublinear_tf=False, binary=binary, **params)
    if counts.nnz == 0:
        with pytest.raises(ValueError, match="no terms"):
            ours.fit(texts)
        return
    weigh = TfidfTransformer().fit(counts)
    assert_same_matrix(ours.fit_transform(texts), weigh.transform(counts))
    more = [text[::-1] for text in texts]
    assert_same_matrix(ours.transform(more), weigh.transform(theirs.transform(more)))


def test_hashing_without_collisions_is_the_vocabulary_in_another_order(real_texts):
    kept, hashed = lt.Tfidf(), lt.Tfidf(n_features=1 << 26)
    X, H = kept.fit_transform(real_texts[:200]), hashed.fit_transform(real_texts[:200])
    columns = np.unique(H.indices)
    assert len(columns) == X.shape[1]
    for i in range(200):
        np.testing.assert_allclose(np.sort(X[i].data), np.sort(H[i].data), rtol=1e-6)
