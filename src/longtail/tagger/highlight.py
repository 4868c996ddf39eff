"""Where the terms of a vectoriser stand in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from longtail.features.characters import strip_accents_ascii, strip_accents_unicode

__all__ = ["Span", "spans"]

Span = tuple[int, int, float]  # start, end (in characters of the text), weight

_WORD = re.compile(r"\w\w+")
_STRIP = {"unicode": strip_accents_unicode, "ascii": strip_accents_ascii}


def spans(vectorizer: Any, text: str, weights: Mapping[str, float]) -> list[Span]:
    """``(start, end, weight)`` of the words that hold weighted terms, in order, not overlapping.

    A word n-gram gives its weight to each of its words, a character n-gram to the word it is part
    of; what a word gets from several terms adds up.

    >>> from longtail import Tfidf
    >>> spans(Tfidf(), "The cat, the CAT!", {"cat": 0.5})
    [(4, 7, 0.5), (13, 16, 0.5)]
    """
    if not hasattr(vectorizer, "ngram_range"):
        return []  # not made from words
    words = [(m.start(), m.end(), _fold(vectorizer, m.group())) for m in _WORD.finditer(text)]
    stop = set(vectorizer.stop_words or ())
    words = [word for word in words if word[2] and word[2] not in stop]
    totals = [0.0] * len(words)
    for term, members in _terms(vectorizer, [word for _, _, word in words]):
        weight = weights.get(term, 0.0)
        for i in members:
            totals[i] += weight
    return [
        (start, end, total)
        for (start, end, _), total in zip(words, totals, strict=True)
        if total != 0.0
    ]


def _fold(vectorizer: Any, word: str) -> str:
    word = word.lower() if vectorizer.lowercase else word
    strip = _STRIP.get(vectorizer.strip_accents)
    return strip(word) if strip else word


def _terms(vectorizer: Any, words: list[str]) -> Iterator[tuple[str, range]]:
    """Every n-gram that touches a word, and which words it touches."""
    low, high = vectorizer.ngram_range
    if vectorizer.analyzer == "word":
        for n in range(low, high + 1):
            for i in range(len(words) - n + 1):
                yield " ".join(words[i : i + n]), range(i, i + n)
        return
    for i, word in enumerate(words):
        padded = f" {word} "
        found = {
            padded[j : j + n]
            for n in range(low, high + 1)
            for j in range(max(1, len(padded) - n + 1))
        }
        yield from ((term, range(i, i + 1)) for term in found)
