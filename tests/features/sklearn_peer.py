"""The comparison with scikit-learn that the tests of Tfidf share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import longtail as lt


def assert_same_matrix(ours: Any, theirs: Any) -> None:
    """Same shape, same entries, same values to float32 rounding."""
    theirs = theirs.tocsr().copy()
    theirs.sort_indices()
    assert ours.shape == theirs.shape
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.data, theirs.data, rtol=3e-7, atol=0)


def in_sklearn(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of Tfidf as scikit-learn has them: a pattern for the length of words."""
    out = dict(params)
    length = out.pop("min_word_length", 2)
    if out.get("analyzer", "word") == "word":
        out["token_pattern"] = rf"(?u)\b\w{{{length},}}\b"
    return out


def fit_sklearn(texts: list[str], **params: Any) -> tuple[TfidfVectorizer, Any] | None:
    """scikit-learn with Tfidf's defaults; None where it finds nothing to learn."""
    theirs = TfidfVectorizer(**{"sublinear_tf": True, "min_df": 2, **in_sklearn(params)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return theirs, theirs.fit_transform(texts)
        except ValueError:
            return None


def compare(fit: list[str], transform: list[str], **params: Any) -> None:
    """Fits both, and compares vocabulary, idf, and the rows of both lists by every way to them."""
    expected = fit_sklearn(fit, **params)
    ours = lt.Tfidf(**params, n_jobs=2)
    if expected is None:
        with pytest.raises(ValueError, match=r"no te(rm|xt)s|none is left|min_df"):
            ours.fit_transform(fit)
        return
    theirs, matrix = expected
    assert_same_matrix(ours.fit_transform(fit), matrix)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    if params.get("use_idf", True):
        np.testing.assert_allclose(ours.idf_, theirs.idf_, rtol=2e-7)
    rows = ours.transform(transform)
    if not transform:  # scikit-learn refuses to transform nothing
        assert rows.shape == (0, matrix.shape[1])
        return
    assert_same_matrix(rows, theirs.transform(transform))
    for i, text in enumerate(transform[:5]):
        columns, values = ours.transform_one(text)
        np.testing.assert_array_equal(columns, rows[i].indices)
        np.testing.assert_array_equal(values, rows[i].data)
