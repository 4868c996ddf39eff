"""Where the terms of a vectoriser stand in a text."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from longtail.features.characters import strip_accents_ascii, strip_accents_unicode

__all__ = ["Span", "Walk", "spans"]

Span = tuple[int, int, float]  # start, end (in characters of the text), weight

_PAUSE = 1000  # terms, a fraction of a millisecond
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
    walk = Walk(vectorizer, text, weights)
    for _ in walk.steps():
        pass
    return walk.spans(weights)


class Walk:
    """The places where some terms stand in a text, found in one walk for any number of labels.

    ``steps`` walks, with a pause now and then for whoever has other things to do; ``spans`` is
    right once it has ended.
    """

    def __init__(self, vectorizer: Any, text: str, terms: Container[str]) -> None:
        self._wanted = terms
        self._members: dict[str, list[int]] = {}
        self._places, self._terms = _cut(vectorizer, text)

    def steps(self) -> Iterator[None]:
        for n, (term, members) in enumerate(self._terms):
            if term in self._wanted:
                self._members.setdefault(term, []).extend(members)
            if n % _PAUSE == _PAUSE - 1:
                yield

    def spans(self, weights: Mapping[str, float]) -> list[Span]:
        """What ``spans`` returns for terms of this weight."""
        totals: dict[int, float] = {}
        for term, weight in weights.items():
            if weight:
                for i in self._members.get(term, ()):
                    totals[i] = totals.get(i, 0.0) + weight
        return [(*self._places[i], totals[i]) for i in sorted(totals) if totals[i] != 0.0]


def _cut(
    vectorizer: Any, text: str
) -> tuple[list[tuple[int, int]], Iterable[tuple[str, Iterable[int]]]]:
    """The places of words in a text, and every term with the places it touches."""
    if not hasattr(vectorizer, "ngram_range"):
        return [], ()  # not made from words
    words = [(m.span(), _fold(vectorizer, m.group())) for m in _WORD.finditer(text)]
    stop = set(vectorizer.stop_words or ())
    words = [(place, word) for place, word in words if word and word not in stop]
    return [place for place, _ in words], _terms(vectorizer, [word for _, word in words])


def _fold(vectorizer: Any, word: str) -> str:
    word = word.lower() if vectorizer.lowercase else word
    strip = _STRIP.get(vectorizer.strip_accents)
    return strip(word) if strip else word


def _terms(vectorizer: Any, words: list[str]) -> Iterator[tuple[str, range]]:
    """Every n-gram that touches a word, and which words it touches."""
    low, high = vectorizer.ngram_range
    if vectorizer.analyzer == "word":
        for n in range(low, min(high, len(words)) + 1):
            for i in range(len(words) - n + 1):
                yield " ".join(words[i : i + n]), range(i, i + n)
        return
    for i, word in enumerate(words):
        padded = f" {word} "
        found = {
            padded[j : j + n]
            for n in range(min(low, len(padded)), min(high, len(padded)) + 1)
            for j in range(max(1, len(padded) - n + 1))
        }
        yield from ((term, range(i, i + 1)) for term in found)
