"""Text vectorisers of scikit-learn as ``Tfidf``, where the two make the same matrix.

A saved model holds data and no code, so a vectoriser of another library cannot be part of it. Those
that ``Tfidf`` can stand in for need not be refused.
"""

from __future__ import annotations

import re
from typing import Any

from longtail.features.tfidf import Tfidf
from longtail.features.tfidf_params import TfidfParams

__all__ = ["is_sklearn_text_vectorizer", "tfidf_from_sklearn"]

_SAME = ("analyzer", "ngram_range", "lowercase", "strip_accents", "binary")
_VOCABULARY = ("min_df", "max_df", "max_features")
_WEIGHTS = ("sublinear_tf", "use_idf", "smooth_idf", "norm")
_COUNTS = {"sublinear_tf": False, "use_idf": False, "norm": None}
_KINDS = ("CountVectorizer", "HashingVectorizer", "TfidfVectorizer")
_WORD = re.compile(r"(?:\(\?u\))?\\b\\w(?:(\\w)?\+|\{(\d+),\})\\b")  # \w+, \w\w+ or \w{3,}


def is_sklearn_text_vectorizer(vectorizer: Any) -> bool:
    """Return whether this is a ``CountVectorizer``, ``HashingVectorizer`` or
    ``TfidfVectorizer``.
    """
    kind = type(vectorizer)
    return kind.__module__ == "sklearn.feature_extraction.text" and kind.__name__ in _KINDS


def tfidf_from_sklearn(vectorizer: Any) -> Tfidf:
    """Return a ``Tfidf``, not fitted, that makes the matrix of this vectoriser (in float32).

    Raises ValueError, with the parameter, for what ``Tfidf`` does not do: functions as
    ``preprocessor``, ``tokenizer``, ``analyzer`` or ``strip_accents``, a ``vocabulary``, texts in
    files, other patterns of words than ``\\w`` from some length on, and hashing with signs.

    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> tfidf_from_sklearn(TfidfVectorizer(token_pattern=r"(?u)\\b\\w+\\b", ngram_range=(1, 2)))
    Tfidf(ngram_range=(1, 2), min_word_length=1, min_df=1, sublinear_tf=False)
    """
    given = vectorizer.get_params(deep=False)
    for name in ("preprocessor", "tokenizer", "vocabulary"):
        if given.get(name) is not None:
            raise ValueError(f"Tfidf has no {name}")
    if given["input"] != "content":
        raise ValueError(f"input={given['input']!r}: Tfidf reads texts, not files")
    for name in ("analyzer", "strip_accents"):
        if callable(given[name]):
            raise ValueError(f"{name} is a function: Tfidf knows names of analysers and accents")
    params = {name: given[name] for name in _SAME}
    kind = type(vectorizer).__name__
    if kind == "HashingVectorizer":
        if given["alternate_sign"]:
            raise ValueError("alternate_sign=True: Tfidf hashes without signs")
        params.update(_COUNTS, n_features=given["n_features"], min_df=0.0, norm=given["norm"])
    else:
        params.update({name: given[name] for name in _VOCABULARY})
        params.update(
            {n: given[n] for n in _WEIGHTS} if kind == "TfidfVectorizer" else dict(_COUNTS)
        )
    if given["analyzer"] == "word":
        params["min_word_length"] = _word_length(given["token_pattern"])
        params["stop_words"] = _stop_words(given["stop_words"])
    tfidf = Tfidf(**params)
    TfidfParams.check(tfidf.get_params(deep=False))
    return tfidf


def _word_length(pattern: Any) -> int:
    found = _WORD.fullmatch(pattern) if isinstance(pattern, str) else None
    if found is None:
        raise ValueError(
            f"token_pattern={pattern!r}: Tfidf counts words of \\w from some length on"
        )
    return int(found[2]) if found[2] else 2 if found[1] else 1


def _stop_words(given: Any) -> list[str] | None:
    if given is None:
        return None
    if given == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return sorted(ENGLISH_STOP_WORDS)
    return sorted(given)
