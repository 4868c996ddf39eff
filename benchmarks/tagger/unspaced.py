"""Texts without spaces between words: words or character n-grams, and which.

    python benchmarks/tagger/unspaced.py TIB-SID-en [--rows 8000]

No public collection of this kind is at hand, so the texts of an English one are written in two ways
that keep what has to be learned and take the spaces away. ``letters`` (as Thai is written): every
letter becomes one of a Thai alphabet. ``syllables`` (as Chinese is written): every three letters of
a word become one of 3,000 ideographs. A part of the words can stay English (``mixed``), or a part
of the texts (``some``). P@5 is measured on the validation split; the test split stays unseen.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import zlib
from typing import Any

import numpy as np

import longtail as lt
from longtail import metrics
from longtail.features.scripts import unspaced_share
from machine import print_machine

SETTINGS: dict[str, dict[str, Any]] = {
    "words": {"min_word_length": 1},
    "char 1-2": {"analyzer": "char", "ngram_range": (1, 2)},
    "char 1-3": {"analyzer": "char", "ngram_range": (1, 3)},
    "char 2-4": {"analyzer": "char", "ngram_range": (2, 4)},
    "char_wb 1-3": {"analyzer": "char_wb", "ngram_range": (1, 3)},
    "char_wb 1-4": {"analyzer": "char_wb", "ngram_range": (1, 4)},
    "char_wb 2-5": {"analyzer": "char_wb", "ngram_range": (2, 5)},
}
# way of writing: (style, part of the words rewritten, part of the texts rewritten)
WAYS = {
    "letters": ("letters", 1.0, 1.0),
    "syllables": ("syllables", 1.0, 1.0),
    "letters, mixed": ("letters", 0.5, 1.0),
    "syllables, mixed": ("syllables", 0.5, 1.0),
    "syllables, some": ("syllables", 1.0, 0.5),
    "syllables, few": ("syllables", 1.0, 0.2),
    "syllables, hardly": ("syllables", 1.0, 0.05),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="texts without spaces between words")
    parser.add_argument("data")
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--words", type=int, default=60, help="words of a text, at most")
    options = parser.parse_args()
    print_machine()
    print()
    folder = os.path.join(os.environ.get("LONGTAIL_DATA", ""), options.data)
    data = lt.load_dataset(folder if os.path.isdir(folder) else options.data)
    Y, truth = data.train.Y[: options.rows], data.dev.Y[:2000]
    has = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    Y, truth = Y[:, has], truth[:, has]
    print(f"{Y.shape[0]:,} rows, {len(has):,} labels, P@5 of one tree in per cent\n")
    print("| written as | share | " + " | ".join(SETTINGS) + " |")
    print("|---|---:|" + "---:|" * len(SETTINGS))
    for way, (style, words, texts) in WAYS.items():
        train = rewritten(data.train.texts[: options.rows], style, words, texts, options.words)
        asked = rewritten(data.dev.texts[:2000], style, words, texts, options.words)
        cells = []
        for params in SETTINGS.values():
            tfidf = lt.Tfidf(**params)
            model = lt.XRLinear().fit(tfidf.fit_transform(train), Y)
            top = model.predict_topk(tfidf.transform(asked), 5)
            cells.append(f"{100 * metrics.precision_at_k(truth, top, k=5):.2f}")
        print(f"| {way} | {unspaced_share(train):.2f} | " + " | ".join(cells) + " |", flush=True)


def rewritten(texts: list[str], style: str, words: float, rows: float, most: int) -> list[str]:
    """The texts in another script, without spaces between the words that are rewritten."""
    rng = random.Random(0)
    out = []
    for text in texts:
        tokens = re.findall(r"\w+|[.,;:!?]", text.lower())[:most]
        if rng.random() >= rows:
            out.append(" ".join(tokens))
            continue
        parts, foreign = [], True
        for token in tokens:
            change = token.isalpha() and rng.random() < words
            if not change and not foreign:
                parts.append(" ")  # spaces stay between words that keep them
            parts.append(STYLES[style](token) if change else token)
            foreign = change
        out.append("".join(parts))
    return out


def _letters(word: str) -> str:
    return "".join(chr(0x0E01 + zlib.crc32(letter.encode()) % 46) for letter in word)


def _syllables(word: str) -> str:
    pieces = [word[i : i + 3] for i in range(0, len(word), 3)]
    return "".join(chr(0x4E00 + zlib.crc32(piece.encode()) % 3000) for piece in pieces)


STYLES = {"letters": _letters, "syllables": _syllables}


if __name__ == "__main__":
    main()
