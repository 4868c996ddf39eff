"""Counts of shards, merged: what a fit on all texts gives, bit for bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail as lt
from longtail import persist

WORDS = ["rare", "label", "labels", "a", "b2", "ümlaut", "tail", "tailor", "Σίγμα", "维生素", "😀x"]


def texts(n: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(0, 12))) for _ in range(n)]


def same(one: lt.Tfidf, other: lt.Tfidf) -> None:
    for name in ("terms_", "term_offsets_", "columns_", "idf_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert one.other_idf_ == other.other_idf_ and one.n_columns_ == other.n_columns_


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"min_df": 1},
        {"ngram_range": (1, 3), "min_df": 3, "max_df": 0.5},
        {"ngram_range": (2, 2), "max_features": 7},
        {"max_features": 4, "binary": True},
        {"max_features": 10_000},
        {"analyzer": "char", "ngram_range": (1, 3)},
        {"analyzer": "char_wb", "ngram_range": (2, 4), "max_features": 20},
        {"n_features": 64, "min_df": 1},
        {"n_features": 2**20, "min_df": 3, "max_df": 0.4},
        {"n_features": 2**20, "min_df": 0.0},
        {"use_idf": False},
        {"smooth_idf": False, "min_word_length": 1},
        {"stop_words": ["a", "rare"]},
    ],
    ids=str,
)
def test_shards_are_the_whole(params: dict[str, Any]) -> None:
    whole = texts(400)
    expected = lt.Tfidf(**params)
    X = expected.fit_transform(whole)
    cuts = [0, 1, 1, 57, 300, 400]  # one shard is empty
    shards = [whole[a:b] for a, b in pairwise(cuts)]
    vectorizer = lt.Tfidf(**params).fit_shards(iter(shards))
    same(vectorizer, expected)
    rows = [vectorizer.transform(shard) for shard in shards if shard]
    for name in ("indices", "data"):
        joined = np.concatenate([getattr(block, name) for block in rows])
        np.testing.assert_array_equal(joined, getattr(X, name))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(alphabet="ab cÉ維\U0001f600\n", max_size=12), min_size=1, max_size=30),
    st.integers(1, 4),
    st.sampled_from(["word", "char", "char_wb"]),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_any_texts(whole: list[str], n_shards: int, analyzer: str, most: int | None) -> None:
    params: dict[str, Any] = {
        "analyzer": analyzer,
        "ngram_range": (1, 2),
        "min_df": 1,
        "min_word_length": 1,
        "max_features": most,
    }
    shards = [whole[i::n_shards] for i in range(n_shards)]
    try:
        expected = lt.Tfidf(**params).fit(whole)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:20]):
            lt.Tfidf(**params).fit_shards(shards)
        return
    same(lt.Tfidf(**params).fit_shards(shards), expected)


def test_counts_travel_through_files_in_any_order(tmp_path: Any) -> None:
    whole, vectorizer = texts(100), lt.Tfidf(ngram_range=(1, 2))
    for i in range(4):
        persist.save(tmp_path / str(i), vectorizer.count_terms(whole[i::4]))
    loaded = [persist.load(tmp_path / str(i)) for i in (2, 0, 3, 1)]
    same(vectorizer.fit_counts(loaded), lt.Tfidf(ngram_range=(1, 2)).fit(whole))


def test_what_cannot_be_merged() -> None:
    with pytest.raises(ValueError, match="no texts"):
        lt.Tfidf().fit_shards([])
    with pytest.raises(ValueError, match="lower min_df"):
        lt.Tfidf(min_df=5).fit_shards([["rare"], ["tail"]])
    counts = lt.Tfidf().count_terms(["rare tail", "tail"])
    with pytest.raises(ValueError, match="how often"):
        lt.Tfidf(min_df=1, max_features=1).fit_counts([counts])
    counts.arrays["term_offsets"] = counts.arrays["term_offsets"][::-1].copy()
    with pytest.raises(ValueError, match="ascend"):
        lt.Tfidf(min_df=1).fit_counts([counts])
    counts = lt.Tfidf().count_terms(["ab ba"])
    counts.arrays["terms"] = np.frombuffer(b"baab", np.uint8)
    with pytest.raises(ValueError, match="must ascend"):
        lt.Tfidf(min_df=1).fit_counts([counts])
