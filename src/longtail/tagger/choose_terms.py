"""Which terms of the texts to count, told by the texts, in one line as well.

- **Words** of one character count ("type 2", "vitamin C"): over all texts the measures hardly move,
  but texts that differ in nothing else are told apart.
- **Short texts** (codes, titles, queries of a few words): pairs of words too; they cost much and
  bring nothing where texts are long.
- **Few texts**: words of a single text are kept, otherwise those of at least two.
- **Scripts without spaces** (``longtail.features.scripts``): where a part of the letters is of such
  scripts, characters and short runs of them, within what stands between spaces: words of other
  scripts in the same texts are then found by their parts.

``benchmarks/tagger/choices.py``, ``short_words.py`` and ``unspaced.py`` make the measurements
behind these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.features import Tfidf
from longtail.features.scripts import unspaced_share

__all__ = ["Terms", "choose_terms"]

SHORT_TEXT = 8.0  # words, on average
FEW_TEXTS = 200  # below this, words of a single text are kept too
UNSPACED = 0.05  # share of the letters, from which words between spaces no longer do
_SAMPLE = 2000  # texts looked at


@dataclass(frozen=True)
class Terms:
    """A vectoriser, not yet fitted; what it counts and what the texts are like, in words."""

    vectorizer: Tfidf
    over: str
    size: str


def choose_terms(
    texts: Sequence[str], given: Mapping[str, Any] | None = None, n_jobs: int | None = None
) -> Terms:
    """Choose the parameters of ``Tfidf`` that ``given`` does not name.

    >>> choose_terms(["vitamin C deficiency"] * 500, {"min_df": 1}).vectorizer
    Tfidf(ngram_range=(1, 2), min_word_length=1, min_df=1)
    >>> terms = choose_terms(["維生素缺乏症"] * 500)
    >>> terms.vectorizer, terms.over
    (Tfidf(analyzer='char_wb', ngram_range=(1, 4)), 'characters and runs of up to 4')
    """
    given = dict(given or {})
    sample = [text for text in texts[:: max(1, len(texts) // _SAMPLE)] if isinstance(text, str)]
    share, words = unspaced_share(sample), _mean(len(text.split()) for text in sample)
    few, unspaced = len(texts) < FEW_TEXTS, share >= UNSPACED
    chosen: dict[str, Any] = {"analyzer": "word", "min_df": 1 if few else 2, "n_jobs": n_jobs}
    if unspaced and given.get("stop_words") is None:  # stop words ask for words
        chosen["analyzer"] = "char_wb"
    if given.get("analyzer", chosen["analyzer"]) == "word":
        chosen["min_word_length"] = 1
        chosen["ngram_range"] = (1, 2) if words <= SHORT_TEXT and not few else (1, 1)
    else:
        chosen["ngram_range"] = (1, 4) if unspaced else (2, 5)
    size = f"{len(texts):,} texts of {words:.0f} words"
    if unspaced:
        size = (
            f"{len(texts):,} texts of {_mean(map(len, sample)):.0f} characters, {share:.0%} of the "
            "letters in scripts without spaces"
        )
    vectorizer = Tfidf(**{**chosen, **given})
    return Terms(vectorizer, _described(vectorizer), size)


def _described(vectorizer: Tfidf) -> str:
    """Return what the vectoriser counts."""
    unit = "words" if vectorizer.analyzer == "word" else "characters"
    low, high = vectorizer.ngram_range
    if high == 1:
        return unit
    if (unit, low, high) == ("words", 1, 2):
        return "words and pairs of words"
    if low == 1:
        return f"{unit} and runs of up to {high}"
    return f"runs of {low} {unit}" if low == high else f"runs of {low} to {high} {unit}"


def _mean(counts: Iterable[int]) -> float:
    found = list(counts)
    return float(np.mean(found)) if found else 0.0
