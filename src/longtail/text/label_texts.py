"""What labels are called, as tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.data.tokens import Tokens
from longtail.features.tokenizer import Tokenizer, as_texts

__all__ = ["described_by_rows", "label_tokens"]


def label_tokens(label_texts: Any, tokenizer: Tokenizer, n_labels: int, longest: int) -> Tokens:
    """Return label texts, or ``Tokens`` of them, as the tokens of ``n_labels`` labels."""
    if isinstance(label_texts, Tokens):
        tokens = label_texts.cut(longest)
        if len(tokens.ids) and tokens.ids.max() >= tokenizer.size:
            raise ValueError(
                f"label_texts hold the token id {tokens.ids.max()}, but the tokenizer has "
                f"{tokenizer.size}"
            )
    else:
        tokens = tokenizer.encode(as_texts(label_texts), longest)
    if len(tokens) != n_labels:
        raise ValueError(f"there are {len(tokens)} label_texts for {n_labels} labels")
    return tokens


def described_by_rows(tokens: Tokens, Y: Any) -> Tokens:
    """Return the shortest text of every label, the first of those; of a label without rows, none.

    It stands for a text of the label where it has none of its own.
    """
    columns = Y.tocsc()
    shortest = np.full(Y.shape[1], len(tokens), np.int64)
    order = np.lexsort((columns.indices, tokens.lengths[columns.indices], _column_of(columns)))
    counts = np.diff(columns.indptr)
    has = counts > 0
    shortest[has] = columns.indices[order][columns.indptr[:-1][has]]
    empty = Tokens(np.array([0, 0], np.int64), np.zeros(0, np.int32))
    return (tokens + empty)[shortest]


def _column_of(columns: Any) -> np.ndarray:
    return np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))
