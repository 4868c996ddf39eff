"""Rows that a model was trained on: how they are recognised, and what a report says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import metrics
from longtail._validation import as_features
from longtail.answers import TopK
from longtail.data.fingerprints import feature_fingerprints, text_fingerprints
from longtail.data.row_filter import Overlap
from longtail.report import Note
from longtail.tagger.fields import Columns, is_matrix

__all__ = ["row_keys", "trained_note", "trained_sentence"]

_BETWEEN = "\0"  # fields: no white space, so that a word cannot move from one to the next
_EMPTY = _BETWEEN + " \t\r\n"


def row_keys(
    columns: Columns, weights: Mapping[str, float] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return fingerprints of rows (n,) uint64, and which rows have one (n,): those that are not
    empty.

    Of fields, those with a weight count, each for itself: the text as the model sees it.
    """
    if is_matrix(columns):
        X = as_features(columns)
        known = np.diff(X.indptr) > 0 if sp.issparse(X) else (X != 0).any(axis=1)
        keys = np.zeros(X.shape[0], np.uint64)
        keys[known] = feature_fingerprints(X)
        return keys, known
    if isinstance(columns, dict):
        used = [c for f, c in columns.items() if weights is None or weights.get(f, 0.0)]
        texts = [_BETWEEN.join(row) for row in zip(*used, strict=True)]
    else:
        texts = columns
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts[{i}] must be a string, got {text!r}")
    known = np.array([bool(text.strip(_EMPTY)) for text in texts], bool)
    return text_fingerprints(texts), known


def trained_sentence(seen: Overlap | None) -> str | None:
    """Return how many rows were trained on, as a sentence without its end; None where none were."""
    n, whole = 0 if seen is None else seen.n_rows, 0 if seen is None else len(seen.hits)
    if not n:
        return None
    if n == whole:
        which = "The only test row" if n == 1 else f"All {n:,} test rows"
        return f"{which} {'is' if n == 1 else 'are'} among the rows this model was trained on"
    about = "About " if seen is not None and seen.step > 1 else ""
    return (
        f"{about}{n:,} of {whole:,} test rows ({100 * n / whole:.3g}%) {'is' if n == 1 else 'are'} "
        "among the rows this model was trained on, or have the same text"
    )


def trained_note(seen: Overlap | None, Y: Any, top: TopK, k: int) -> Note | None:
    """Return what the report must say where test rows were trained on."""
    said = trained_sentence(seen)
    if said is None or seen is None:
        return None
    others = ~seen.hits
    if seen.n_rows == len(seen.hits) or not others.any():
        means = "the numbers here tell how well it remembers them, not how it does on new texts"
    else:
        means = "its answers to them are better than to new texts, and lift every number here"
        if seen.step == 1:
            value = metrics.precision_at_k(Y[others], top[others], k=k)
            means += f". On the {int(others.sum()):,} other rows P@{k} is {100 * value:.2f}%"
    return Note("trained-on", ("all",), f"{said}: {means}. Measure on rows that it has not seen.")
