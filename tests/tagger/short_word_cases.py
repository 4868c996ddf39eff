"""Diagnoses that differ in a word of one character, and the model that left such words out."""

from __future__ import annotations

from pathlib import Path

#: A tagger fitted on ``diagnoses()`` and saved before ``Tfidf`` had ``min_word_length``.
OLD_MODEL = Path(__file__).parent / "golden" / "before-min-word-length"

_WHERE = ["", "with complications", "without complications", "in adults", "in children", "chronic"]


def diagnoses(rounds: int = 20) -> tuple[list[str], list[list[str]]]:
    """Texts of a few words; the one-character word alone tells the label."""
    kinds = {
        "type 1 diabetes": "E10",
        "type 2 diabetes": "E11",
        "vitamin A deficiency": "E50",
        "vitamin C deficiency": "E54",
        "vitamin D deficiency": "E55",
        "hepatitis A": "B15",
        "hepatitis B": "B16",
    }
    texts, labels = [], []
    for i in range(rounds):
        for text, code in kinds.items():
            texts.append(f"{text} {_WHERE[i % len(_WHERE)]}".strip())
            labels.append([code])
    return texts, labels
