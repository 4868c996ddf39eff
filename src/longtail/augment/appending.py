"""Rows of any kind: which of them are empty, some of them, and one set below another."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_features, as_labels, check_same_rows
from longtail.augment.co_occurrence_graph import row_of
from longtail.data.text_rows import TextRows
from longtail.data.tokens import Tokens

__all__ = ["append_rows", "as_rows", "filled"]


def append_rows(X: Any, Y: Any, extra_X: Any, extra_Y: Any) -> tuple[Any, sp.csr_matrix]:
    """Return the rows ``X`` with ``extra_X`` below them, and their labels.

    Rows are texts, ``Tokens``, a sparse or a dense matrix; both of one kind. What comes back can be
    passed to ``fit``. Where a model takes it, say ``n_label_rows=len(extra_Y)`` there: these rows
    are learned from, and are no instances to validate on or to count.

    Parameters
    ----------
    X : matrix of shape (n, d), list of str, or Tokens
        Rows.
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    extra_X : matrix, list of str, or Tokens
        Rows of the same kind, to put below.
    extra_Y : matrix of shape (m, L)
        Their labels.

    >>> X, Y = append_rows(["a cat"], [[0]], ["pet", "dog"], [[0, 1], [1]])
    >>> X, Y.toarray().tolist()
    (['a cat', 'pet', 'dog'], [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    """
    X, extra_X = as_rows(X, "X"), as_rows(extra_X, "extra_X")
    extra_Y = as_labels(extra_Y, name="extra_Y")
    Y = as_labels(Y, n_labels=None if sp.issparse(Y) else extra_Y.shape[1])
    check_same_rows(X.shape[0], Y.shape[0])
    check_same_rows(extra_X.shape[0], extra_Y.shape[0], "extra_X", "extra_Y")
    if Y.shape[1] != extra_Y.shape[1]:
        raise ValueError(f"Y has {Y.shape[1]} labels, but extra_Y has {extra_Y.shape[1]}")
    return _below(X, extra_X), sp.vstack([Y, extra_Y], format="csr", dtype=np.float32)


def as_rows(X: Any, name: str) -> Any:
    """Return rows in canonical form: ``TextRows``, ``Tokens``, CSR or dense float32.

    None in a list of texts stands for a text that is not there.
    """
    if isinstance(X, (Tokens, TextRows)):
        return X
    if isinstance(X, (str, bytes)):
        raise TypeError(f"{name} is a single text: pass a list of texts")
    if not sp.issparse(X) and not hasattr(X, "columns"):
        values = X.tolist() if getattr(X, "ndim", 2) == 1 else X
        if isinstance(values, (list, tuple)) and all(
            isinstance(text, str) or text is None for text in values
        ):
            return TextRows("" if text is None else text for text in values)
    return as_features(X, name=name)


def filled(rows: Any) -> np.ndarray:
    """Return which rows hold anything, (n,) bool: a text that is not blank, a token beside those
    that every text has, a value that is not 0.
    """
    if isinstance(rows, TextRows):
        return np.array([bool(text.strip()) for text in rows], bool)
    if isinstance(rows, Tokens):
        if rows.source is None:
            return np.asarray(rows.lengths > 0)
        nothing = rows.source.encode([""]).ids
        short = np.flatnonzero(rows.lengths == len(nothing))
        out = np.asarray(rows.lengths > 0)
        out[short] = [not np.array_equal(row, nothing) for row in rows[short]]
        return out
    if sp.issparse(rows):
        return np.bincount(row_of(rows), rows.data != 0, rows.shape[0]) > 0
    return np.asarray((rows != 0).any(axis=1))


def _below(X: Any, extra: Any) -> Any:
    kinds = [_kind(rows) for rows in (X, extra)]
    if kinds[0] != kinds[1]:
        raise TypeError(f"X holds {kinds[0]} and extra_X {kinds[1]}: both must be of one kind")
    if isinstance(X, TextRows):
        return TextRows(X + extra)
    if isinstance(X, Tokens):
        if X.source is not None and extra.source is not None and X.source != extra.source:
            raise ValueError("X and extra_X were made by different tokenizers")
        return X + extra
    if X.shape[1] != extra.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, but extra_X has {extra.shape[1]}")
    if sp.issparse(X):
        return sp.vstack([X, extra], format="csr", dtype=np.float32)
    return np.concatenate([X, extra])


def _kind(rows: Any) -> str:
    if isinstance(rows, (TextRows, Tokens)):
        return "texts" if isinstance(rows, TextRows) else "tokens"
    return "a sparse matrix" if sp.issparse(rows) else "a dense matrix"
