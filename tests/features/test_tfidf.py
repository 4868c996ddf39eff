"""What Tfidf promises beyond scikit-learn's numbers: threads, refusals, saving, odd input."""

# ruff: noqa: RUF001

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn_peer import compare

import longtail as lt
from longtail.exceptions import ModelFormatError

TEXTS = ["rare labels matter", "labels with few texts", "rare texts, rare labels"]


def arrays(vectoriser: lt.Tfidf, X: sp.csr_matrix) -> list[np.ndarray]:
    learned = [vectoriser.terms_, vectoriser.term_offsets_, vectoriser.idf_]
    return [*learned, X.indptr, X.indices, X.data]


@pytest.mark.parametrize(
    "params",
    [
        {"ngram_range": (1, 3), "min_df": 1},
        {"max_features": 500, "ngram_range": (1, 2)},
        {"n_features": 4096},
        {"analyzer": "char_wb", "ngram_range": (2, 4)},
    ],
    ids=str,
)
def test_same_bits_for_any_number_of_threads(params):
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(list("abcdeé東"), 1 + i % 9)) for i in range(3000)])
    texts = [" ".join(words[rng.zipf(1.3, 60) % 3000]) for _ in range(3000)]  # several blocks
    reference = None
    for n_jobs in (1, 2, 5):
        vectoriser = lt.Tfidf(**params, n_jobs=n_jobs)
        found = arrays(vectoriser, vectoriser.fit_transform(texts))
        again = vectoriser.transform(texts)
        reference = reference or found
        for ours, first in zip(found, reference, strict=True):
            assert ours.dtype == first.dtype and np.array_equal(ours, first)
        for ours, first in zip((again.indptr, again.indices, again.data), found[3:], strict=True):
            assert np.array_equal(ours, first)  # transform is fit_transform, to the bit
        fitted = lt.Tfidf(**params, n_jobs=n_jobs).fit(texts)
        assert np.array_equal(fitted.idf_, vectoriser.idf_)
        assert np.array_equal(fitted.terms_, vectoriser.terms_)


def test_rows_are_canonical_float32():
    X = lt.Tfidf().fit_transform(TEXTS)
    assert isinstance(X, sp.csr_matrix) and X.dtype == np.float32
    assert X.indices.dtype == X.indptr.dtype == np.int32
    X.has_canonical_format = X.has_sorted_indices = None
    del X._has_canonical_format, X._has_sorted_indices
    assert X.has_canonical_format
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1, rtol=1e-6)


def test_words_longer_than_a_slot_are_told_apart():
    long = ["x" * n + tail for n in (14, 15, 16, 17, 31, 32, 33, 500) for tail in ("", "a", "b")]
    compare([" ".join(long), " ".join(long[::-1]), long[3], long[-1]], long, ngram_range=(1, 2))


def test_more_than_65536_texts_and_terms_in_a_row():
    many = " ".join(f"w{i}" for i in range(70_000))
    compare([many, many + " w5 w69999 w65541", "w5 w6"], [many], min_df=1)
    texts = ["ab cd"] * 65_537 + ["ab"] * 70_000
    fitted = lt.Tfidf(ngram_range=(1, 2)).fit(texts)
    n = len(texts)
    expected = 1 + np.log((1 + n) / (1 + np.array([n, 65_537, 65_537])))
    np.testing.assert_allclose(fitted.idf_, expected, rtol=2e-7)


def test_final_sigma_and_dotted_i_are_lowered_as_str_does():
    text = "ΟΔΥΣΣΕΥΣ Σ ΑΣ.Α İSTANBUL ΑΣ\u0301Α Σ" + "\U0001f600"
    assert lt.Tfidf(analyzer="char").analyze(text) == list(text.lower())
    assert lt.Tfidf().analyze("ΟΔΥΣΣΕΥΣ ΑΣ") == ["οδυσσευς", "ας"]

    class Shouting(str):
        def lower(self):
            raise AssertionError("str.lower is meant, not an override of it")

    assert lt.Tfidf().analyze(Shouting("ΑΣ ΣΑ")) == ["ας", "σα"]
    assert lt.Tfidf(lowercase=False).analyze("ΑΣ") == ["ΑΣ"]


def test_lone_surrogates_and_nul_are_characters():
    texts = ["a\ud800b\x00\x00", "\udfff\x00 \ud800", "a\ud800"]
    fitted = lt.Tfidf(analyzer="char", ngram_range=(1, 2), min_df=1).fit(texts)
    names = fitted.get_feature_names_out().tolist()
    assert names == sorted(names)
    assert {"\x00", "\x00\x00", "\ud800", "a\ud800", "\udfff\x00"} <= set(names)
    assert fitted.vocabulary_["\ud800"] == names.index("\ud800")


def test_empty_texts_are_empty_rows():
    X = lt.Tfidf().fit_transform(["", *TEXTS, "!!", "unseen-words-only"])
    assert X[0].nnz == X[4].nnz == X[5].nnz == 0
    columns, values = lt.Tfidf().fit(TEXTS).transform_one("")
    assert len(columns) == len(values) == 0 and columns.dtype == np.int32


def test_any_iterable_of_str_will_do():
    expected = lt.Tfidf().fit_transform(TEXTS)
    for texts in (tuple(TEXTS), iter(TEXTS), np.array(TEXTS), np.array(TEXTS, object)):
        assert abs(lt.Tfidf().fit_transform(texts) - expected).nnz == 0
    pandas = pytest.importorskip("pandas")
    for dtype in (object, "string"):
        series = pandas.Series(TEXTS, dtype=dtype)
        assert abs(lt.Tfidf().fit_transform(series) - expected).nnz == 0


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("a single text", TypeError, "wrap it"),
        (b"bytes", TypeError, "wrap it"),
        ({"a": 1}, TypeError, "dict"),
        ({"aa", "bb"}, TypeError, "set"),
        (7, TypeError, "got int"),
        (np.array([["aa", "bb"]]), ValueError, "one dimension"),
        (["aa", None], TypeError, "text 1 is of type NoneType: replace missing"),
        (["aa", float("nan")], TypeError, "text 1 is of type float: replace missing"),
        (["aa", b"aa"], TypeError, "text 1 is of type bytes: decode"),
        (["aa", ["bb"]], TypeError, "text 1 is of type list: texts must be str"),
    ],
)
def test_what_is_not_a_list_of_texts_is_refused(texts, error, message):
    fitted = lt.Tfidf().fit(TEXTS)
    for call in (lt.Tfidf().fit, lt.Tfidf().fit_transform, fitted.transform):
        with pytest.raises(error, match=message):
            call(texts)
    with pytest.raises(TypeError, match="must be str"):
        fitted.transform_one(b"text")


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"analyzer": "words"}, ValueError, "'word', 'char', 'char_wb'"),
        ({"analyzer": str.split}, ValueError, "analyzer must be one of"),
        ({"ngram_range": (2, 1)}, ValueError, "ascend"),
        ({"ngram_range": (0, 1)}, ValueError, "at least 1"),
        ({"ngram_range": 2}, ValueError, "two numbers"),
        ({"lowercase": 1}, TypeError, "lowercase must be True or False"),
        ({"strip_accents": "latin"}, ValueError, "strip_accents"),
        ({"min_word_length": 0}, ValueError, "min_word_length must be at least 1"),
        ({"min_word_length": 1.0}, TypeError, "whole number"),
        ({"min_word_length": 2**40}, ValueError, "shorter than min_word_length"),
        ({"stop_words": "english"}, TypeError, "ENGLISH_STOP_WORDS"),
        ({"stop_words": ["a", 1]}, TypeError, "must hold str"),
        ({"stop_words": ["a"], "analyzer": "char"}, ValueError, "leave them out"),
        ({"min_df": 0}, ValueError, "at least 1"),
        ({"min_df": 1.5}, ValueError, r"\[0, 1\]"),
        ({"max_df": float("nan")}, ValueError, r"\[0, 1\]"),
        ({"max_df": True}, TypeError, "max_df must be"),
        ({"min_df": 4}, ValueError, "there are 3 texts"),
        ({"max_df": 0.1}, ValueError, "lower min_df"),
        ({"min_df": 0.9, "max_df": 0.95}, ValueError, "of 6 terms none is left"),
        ({"max_features": 0}, ValueError, "max_features must be at least 1"),
        ({"n_features": 2.0}, TypeError, "whole number"),
        ({"n_features": 2**31}, ValueError, "below"),
        ({"n_features": 8, "max_features": 8}, ValueError, "one of the two"),
        ({"norm": "max"}, ValueError, "norm"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"stop_words": ["rare", "labels", "texts", "few", "matter", "with"]}, ValueError, "no te"),
    ],
)
def test_parameters_out_of_range_are_refused_by_fit(params, error, message):
    vectoriser = lt.Tfidf(**params)
    with pytest.raises(error, match=message):
        vectoriser.fit(TEXTS)


def test_use_before_fit_is_refused():
    for call in ("transform", "transform_one"):
        with pytest.raises(ValueError, match="call fit first"):
            getattr(lt.Tfidf(), call)(["text"])
    with pytest.raises(ValueError, match="no names"):
        lt.Tfidf(n_features=16).fit(TEXTS).get_feature_names_out()


def test_a_failed_fit_leaves_the_vectoriser_as_it_was():
    vectoriser = lt.Tfidf().fit(TEXTS)
    with pytest.raises(ValueError, match="none is left"):
        vectoriser.fit(["all", "different", "words"])
    assert vectoriser.transform(TEXTS).nnz == 7


def test_parameters_changed_after_fit_are_respected():
    vectoriser = lt.Tfidf().fit(TEXTS)
    assert vectoriser.transform(TEXTS).max() < 1
    assert vectoriser.set_params(norm=None).transform(TEXTS).max() > 1
    vectoriser.binary, vectoriser.use_idf = True, False
    assert vectoriser.transform(["rare rare"]).max() == vectoriser.idf_[1]


def test_it_works_as_a_scikit_learn_step():
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    model = make_pipeline(lt.Tfidf(min_df=1, n_jobs=1), LinearSVC()).fit(TEXTS, [0, 1, 0])
    assert model.predict(TEXTS).tolist() == [0, 1, 0]
    vectoriser = lt.Tfidf(ngram_range=(1, 2), stop_words=["few"]).fit(TEXTS)
    vectoriser.transform(TEXTS)
    copy = pickle.loads(pickle.dumps(vectoriser))
    assert abs(copy.transform(TEXTS) - vectoriser.transform(TEXTS)).nnz == 0
    assert clone(vectoriser).get_params() == vectoriser.get_params()


@pytest.mark.parametrize(
    "params",
    [
        {"stop_words": {"few", "of"}, "ngram_range": [1, 2], "min_df": np.int64(1)},
        {"analyzer": "char", "strip_accents": "unicode", "norm": None},
        {"n_features": 64, "min_df": 1},
        {"min_word_length": 1, "min_df": 1},
        {"min_word_length": 5, "min_df": 1},
    ],
    ids=str,
)
def test_saving_brings_back_the_same_vectoriser(params, tmp_path):
    vectoriser = lt.Tfidf(**params).fit(TEXTS)
    vectoriser.save(tmp_path / "model")
    expected = vectoriser.transform(TEXTS).toarray()
    for mmap in (True, False):
        back = lt.load(tmp_path / "model", mmap=mmap, verify=True)
        assert back.ngram_range == tuple(vectoriser.ngram_range)
        assert np.array_equal(back.transform(TEXTS).toarray(), expected)
        if back.n_features is None:
            assert back.vocabulary_ == vectoriser.vocabulary_
        back.save(tmp_path / f"again-{mmap}")


def test_a_state_of_before_leaves_words_of_one_character_out():
    texts = ["vitamin C", "vitamin D"]
    state = lt.Tfidf(min_df=1).fit(texts)._get_state()
    del state.params["min_word_length"]
    old = lt._models.from_state(state)
    assert old.min_word_length == 2 and old.get_feature_names_out().tolist() == ["vitamin"]
    now = lt.Tfidf(min_df=1, min_word_length=1).fit(texts)
    assert now.get_feature_names_out().tolist() == ["c", "d", "vitamin"]


def damage(name, value):
    return lambda state: state.arrays.__setitem__(name, value(state.arrays[name]))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda state: state.arrays.pop("terms"), "'terms'"),
        (damage("idf", lambda a: a.astype(np.float64)), "'idf' should be float32"),
        (damage("idf", lambda a: a[:-1]), r"'idf' should be float32 of shape \(3\)"),
        (damage("idf", lambda a: a * np.nan), "not finite"),
        (damage("idf", lambda a: -a), "negative"),
        (damage("terms", lambda a: a[:-1]), "terms at"),
        (damage("term_offsets", lambda a: a[[0, 2, 1, 3]]), "ascend from 0"),
        (damage("term_offsets", lambda a: a + 1), "ascend from 0"),
        (damage("term_offsets", lambda a: a[:0]), "ascend from 0"),
        (damage("term_offsets", lambda a: a.reshape(2, 2)), "'term_offsets'"),
        (lambda state: state.params.update(analyzer="words"), "analyzer must be one of"),
        (lambda state: state.params.update(n_features=4), r"shape \(4\)"),
    ],
)
def test_damaged_state_is_refused(harm, message):
    state = lt.Tfidf().fit(TEXTS)._get_state()
    harm(state)
    with pytest.raises(ModelFormatError, match=message):
        lt._models.from_state(state)


def test_terms_in_any_order_and_of_any_bytes_are_found_or_not_but_harmless():
    state = lt.Tfidf(ngram_range=(1, 3)).fit(TEXTS)._get_state()
    for words in (
        [b"rare labels", b"rare", b"rare", b" ", b"", b"\xff" * 16, b"\xf0", b"rare "],
        [b"texts rare labels", b"texts rare", b"labels", b"a" * 40],
    ):
        state.arrays["terms"] = np.frombuffer(b"".join(words), np.uint8)
        state.arrays["term_offsets"] = np.cumsum([0, *map(len, words)], dtype=np.int64)
        state.arrays["idf"] = np.ones(len(words), np.float32)
        for analyzer in ("word", "char"):
            vectoriser = lt.Tfidf._from_state(state).set_params(analyzer=analyzer, norm=None)
            columns, _ = vectoriser.transform_one("texts rare labels")
            if analyzer == "word":
                known = [words.index(w) for w in words if w in b"texts rare labels" and w.strip()]
                known = [i for i in known if words[i] == words[i].strip()]
                assert columns.tolist() == sorted(set(known))


def test_ctrl_c_stops_a_long_fit():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdefghij "), 2000)) for _ in range(2000)]
    done = threading.Event()

    def interrupt():
        if not done.wait(0.3):
            os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Thread(target=interrupt)
    timer.start()
    started = time.process_time()  # of this process alone: others do not make it late
    try:
        with pytest.raises(KeyboardInterrupt):
            lt.Tfidf(analyzer="char", ngram_range=(1, 12), n_jobs=1).fit(texts)
    finally:
        done.set()
        timer.join()
    assert time.process_time() - started < 5  # the whole of it takes three times as long


def test_one_huge_text():
    text = "word " * 400_000 + "東京" * 200_000 + " " + "\U0001f600a" * 300_000
    X = lt.Tfidf(min_df=1, norm=None, sublinear_tf=False, use_idf=False).fit_transform([text])
    assert X.shape == (1, 2) and X.toarray().tolist() == [[400_000, 1]]
    vectoriser = lt.Tfidf(min_df=1).fit([text])
    columns, _ = vectoriser.transform_one(text)
    assert columns.tolist() == [0, 1]


def test_importing_it_does_not_import_scikit_learn():
    import subprocess

    code = "import longtail, sys; longtail.Tfidf; print('sklearn' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
