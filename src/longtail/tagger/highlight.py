"""Where the terms of a vectoriser stand in a text."""

from __future__ import annotations

import re
from collections.abc import Container, Generator, Iterable, Iterator, Mapping
from typing import Any

from longtail.features import Tfidf
from longtail.features.characters import strip_accents_ascii, strip_accents_unicode
from longtail.features.scripts import UNSPACED

__all__ = ["Span", "Walk", "spans"]

Span = tuple[int, int, float]  # start, end (in characters of the text), weight
Place = tuple[int, int]
# A term, and which places it touches; None where nothing was found for a while.
Terms = Iterable[tuple[str, Iterable[int]] | None]
Cut = Generator[None, None, tuple[list[Place], Terms]]

_PAUSE = 1000  # words, characters or terms between two pauses: a millisecond or less
_WORD = re.compile(r"\w+")
# A run of a script without spaces is no word: each of its characters, marks too, is marked alone.
_PIECE = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])\w)+")
_STRIP = {"unicode": strip_accents_unicode, "ascii": strip_accents_ascii}


def spans(vectorizer: Any, text: str, weights: Mapping[str, float]) -> list[Span]:
    """Return ``(start, end, weight)`` of the words that hold weighted terms, in order, not
    overlapping.

    A word n-gram gives its weight to each of its words, a character n-gram to the words it is part
    of or, in scripts without spaces, to each of its characters; what a word gets from several terms
    adds up.

    >>> spans(Tfidf(), "The cat, the CAT!", {"cat": 0.5})
    [(4, 7, 0.5), (13, 16, 0.5)]
    >>> spans(Tfidf(analyzer="char", ngram_range=(1, 2)), "東京です", {"東京": 0.5, "京": 1.0})
    [(0, 1, 0.5), (1, 2, 1.5)]
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
        self._vectorizer, self._text, self._wanted = vectorizer, text, terms
        self._places: list[Place] = []
        self._members: dict[str, list[int]] = {}

    def steps(self) -> Iterator[None]:
        self._places, terms = yield from _cut(self._vectorizer, self._text)
        for n, found in enumerate(terms):
            if found is not None and found[0] in self._wanted:
                self._members.setdefault(found[0], []).extend(found[1])
            if found is None or n % _PAUSE == _PAUSE - 1:
                yield

    def spans(self, weights: Mapping[str, float]) -> list[Span]:
        """Return what ``spans`` returns for terms of this weight."""
        totals: dict[int, float] = {}
        for term, weight in weights.items():
            if weight:
                for i in self._members.get(term, ()):
                    totals[i] = totals.get(i, 0.0) + weight
        return [(*self._places[i], totals[i]) for i in sorted(totals) if totals[i] != 0.0]


def _cut(vectorizer: Any, text: str) -> Cut:
    """Yield the places of words in a text, and every term with the places it touches, with
    pauses.
    """
    if not isinstance(vectorizer, Tfidf):
        return [], ()  # not made from words, or not known how
    return (yield from (_words if vectorizer.analyzer == "word" else _pieces)(vectorizer, text))


def _fold(vectorizer: Tfidf, word: str) -> str:
    word = word.lower() if vectorizer.lowercase else word
    strip = _STRIP.get(vectorizer.strip_accents or "")
    return strip(word) if strip else word


def _words(vectorizer: Tfidf, text: str) -> Cut:
    stop, least = set(vectorizer.stop_words or ()), max(vectorizer.min_word_length, 1)
    places: list[Place] = []
    words: list[str] = []
    for n, match in enumerate(_WORD.finditer(text)):
        word = _fold(vectorizer, match.group())
        if len(word) >= least and word not in stop:
            places.append(match.span())
            words.append(word)
        if n % _PAUSE == _PAUSE - 1:
            yield
    return places, _word_ngrams(words, *vectorizer.ngram_range)


def _word_ngrams(words: list[str], low: int, high: int) -> Iterator[tuple[str, range]]:
    for n in range(low, min(high, len(words)) + 1):
        for i in range(len(words) - n + 1):
            yield " ".join(words[i : i + n]), range(i, i + n)


def _pieces(vectorizer: Tfidf, text: str) -> Cut:
    """Words, or single characters of scripts without spaces, and the n-grams that touch them."""
    places: list[Place] = []
    owner = [-1] * len(text)  # of each character: its place, -1 for none
    for i, match in enumerate(_PIECE.finditer(text)):
        start, end = match.span()
        places.append((start, end))
        owner[start:end] = [i] * (end - start)
        if i % _PAUSE == _PAUSE - 1:
            yield
    pattern = r"\S+" if vectorizer.analyzer == "char_wb" else r"(?s).+"
    chunks = (match.span() for match in re.finditer(pattern, text))
    terms = (t for start, end in chunks for t in _ngrams(vectorizer, text, start, end, owner))
    return places, terms


def _ngrams(
    vectorizer: Tfidf, text: str, start: int, end: int, owner: list[int]
) -> Iterator[tuple[str, set[int]] | None]:
    """Yield the character n-grams of one stretch of text, each once, and the places they touch."""
    characters: list[tuple[str, int]] = []
    for i in range(start, end):
        if text[i].isspace() and characters and characters[-1][0].isspace():
            characters[-1] = (" ", -1)  # a run of spaces counts as one
        else:
            characters += [(c, owner[i]) for c in _fold(vectorizer, text[i])]
        if (i - start) % _PAUSE == _PAUSE - 1:
            yield None
    if vectorizer.analyzer == "char_wb":
        characters = [(" ", -1), *characters, (" ", -1)]
    folded = "".join(c for c, _ in characters)
    low, high = vectorizer.ngram_range
    found: dict[str, set[int]] = {}
    for n in range(min(low, len(folded)), min(high, len(folded)) + 1):
        for i in range(len(folded) - n + 1):
            touched = {place for _, place in characters[i : i + n] if place >= 0}
            found.setdefault(folded[i : i + n], set()).update(touched)
            if i % _PAUSE == _PAUSE - 1:
                yield None
    yield from found.items()
