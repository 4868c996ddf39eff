"""What a model is, for people who have never heard of it."""

from __future__ import annotations

from typing import Any

__all__ = ["in_words"]

_HOW = {
    "DECLARE": "It learned a few numbers for every label, and looks for labels whose numbers fit.",
    "DualEncoder": "It compares what a text says with what labels are called.",
    "Ensemble": "Several models vote; each weighs the words of a text.",
    "MACH": "It learned groups of labels, and answers with labels whose groups all fit the text.",
    "NearestNeighbors": "It looks for the most similar texts it knows, and takes their labels.",
    "Network": "A neural network reads the words of a text and scores every label.",
    "OneVsAll": "For every label it learned how much each word speaks for or against it.",
    "Popularity": "It always answers with the most frequent labels, whatever the text: a baseline.",
    "TextNetwork": "A neural network reads the text and scores every label.",
    "UniDEC": "It reads the text, and compares it with what labels are called.",
    "XRLinear": "It learned how much each word speaks for a group of labels, then for each label.",
    "XRTransformer": "A neural network reads the text, and narrows its labels down group by group.",
}


def in_words(tagger: Any) -> str:
    """Return what a fitted tagger does, how much it knows, and what its numbers are.

    >>> import longtail as lt
    >>> tagger = lt.Tagger().fit(["paper jam", "log in"] * 5, [["printer"], ["login"]] * 5)
    >>> in_words(tagger)
    'Suggests labels for a text. It knows 2 labels, from 10 texts that people had labelled. For ...'
    """
    how = _HOW.get(type(tagger.model_).__name__, "")
    numbers = (
        "A percentage is how often such an answer was right on texts it had not learned from."
        if tagger.has_probabilities
        else "Scores are higher for better answers; they are no probabilities."
    )
    known = f"It knows {len(tagger.label_names):,} labels, from {tagger.n_rows_:,} texts"
    parts = ["Suggests labels for a text.", f"{known} that people had labelled.", how, numbers]
    return " ".join(part for part in parts if part)
