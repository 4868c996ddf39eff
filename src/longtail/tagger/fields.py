"""Texts of one or several fields, as columns; columns, as rows of features.

One field: a list of strings. Several: a mapping from field to a list of strings, or one mapping a
row. Rows of features (a matrix) pass through as they are. The fields share a vocabulary, learned
from their texts together, and the row of a text is

    x = sum over fields f of weight_f * tfidf(text_f)

where each term is a unit vector: a weight says how much a field counts, however long its text is.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_features, check_same_rows
from longtail.features import Tfidf
from longtail.features.tfidf_params import check_texts
from longtail.tagger.given import GivenFeatures
from longtail.tagger.plain_texts import PlainTexts

__all__ = ["Columns", "as_columns", "check_weights", "vectorize", "is_matrix", "joined", "rows_of"]

Columns = Any  # list of texts, dict of such lists by field, or a matrix of features


def check_weights(weights: Any) -> dict[str, float] | None:
    """Return field weights as plain numbers.

    Raise TypeError if they are no mapping or empty, ValueError if one is negative or not finite or
    all are 0.
    """
    if weights is None:
        return None
    if not isinstance(weights, Mapping) or not weights:
        raise TypeError(
            f"field_weights must map fields to weights, as in {{'title': 2.0}}, got {weights!r}"
        )
    for field, weight in weights.items():
        if not isinstance(field, str):
            raise TypeError(f"field_weights: a field is named by a string, got {field!r}")
        real = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
        if not real or not math.isfinite(float(weight)) or float(weight) < 0:
            raise ValueError(f"field_weights[{field!r}] must be a number >= 0, got {weight!r}")
    if not any(float(weight) for weight in weights.values()):
        raise ValueError("field_weights are all 0: give at least one field a weight")
    return {str(field): float(weight) for field, weight in weights.items()}


def is_matrix(texts: Any) -> bool:
    """Return whether these are rows of numbers and not texts."""
    return sp.issparse(texts) or (isinstance(texts, np.ndarray) and texts.dtype.kind in "fiub")


def as_columns(texts: Any, fields: Sequence[str] | None) -> Columns:
    """Return texts in canonical form. ``fields``: those to take; None takes what is there.

    A plain list is also accepted where fields are expected: each text is then the whole row.

    >>> as_columns([{"title": "A cat", "body": "Asleep."}, {"title": "A cow"}], ["title", "body"])
    {'title': ['A cat', 'A cow'], 'body': ['Asleep.', '']}
    """
    if is_matrix(texts):
        return texts
    if isinstance(texts, Mapping):
        return _from_mapping(texts, fields)
    listed = check_texts(texts)
    if not any(isinstance(row, Mapping) for row in listed):
        return listed
    return _from_records(listed, fields)


def _from_mapping(texts: Mapping[str, Any], fields: Sequence[str] | None) -> Columns:
    chosen = list(texts) if fields is None else list(fields)
    if not chosen:
        raise ValueError("texts names no field: give a list of strings for at least one")
    missing = [field for field in chosen if field not in texts]
    if missing:
        have = ", ".join(map(repr, texts)) or "none"
        raise ValueError(f"texts has no field {missing[0]!r}: its fields are {have}")
    columns = {field: check_texts(texts[field]) for field in chosen}
    lengths = {field: len(column) for field, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{field} {length}" for field, length in lengths.items())
        raise ValueError(f"the fields have different numbers of texts: {found}")
    return columns


def _from_records(records: list[Any], fields: Sequence[str] | None) -> Columns:
    if fields is None:
        # Every field that any row has, in the order in which they appear.
        fields = list(
            dict.fromkeys(key for row in records if isinstance(row, Mapping) for key in row)
        )
    columns: dict[str, list[str]] = {field: [] for field in fields}
    for i, row in enumerate(records):
        if not isinstance(row, Mapping):
            raise TypeError(f"texts[{i}] is {type(row).__name__}, but other rows have fields")
        if not any(field in row for field in fields):
            have = ", ".join(map(repr, fields)) or "of other rows"
            raise ValueError(f"texts[{i}] has none of the fields {have}")
        for field in fields:
            value = row.get(field)
            columns[field].append("" if value is None else value)
    return columns


def joined(columns: Columns) -> list[str]:
    """Return one text per row: its fields in order, with a line break between; "" for rows of
    features.
    """
    if is_matrix(columns):
        return [""] * int(columns.shape[0])
    if isinstance(columns, list):
        return columns
    for field, column in columns.items():
        for i, text in enumerate(column):
            if not isinstance(text, str):
                raise TypeError(f"texts[{i}][{field!r}] must be a string, got {text!r}")
    return ["\n".join(part for part in row if part) for row in zip(*columns.values(), strict=True)]


def vectorize(columns: Columns, vectorizer: Any, weights: Mapping[str, float] | None) -> Any:
    """Fit the vectoriser on these columns and return their features (n, d)."""
    if isinstance(vectorizer, PlainTexts):
        return vectorizer.fit_transform(_weighed(columns, weights))
    if isinstance(columns, dict):
        whole = joined(columns)
        vectorizer.fit(whole) if hasattr(vectorizer, "fit") else vectorizer.fit_transform(whole)
        return rows_of(columns, vectorizer, weights)
    if is_matrix(columns) and isinstance(vectorizer, Tfidf):
        return as_features(columns)  # made by it
    rows = as_features(vectorizer.fit_transform(columns), name="what the vectorizer returned")
    check_same_rows(len(joined(columns)), rows.shape[0], "texts", "what the vectorizer returned")
    return rows


def _weighed(columns: Columns, weights: Mapping[str, float] | None) -> list[str]:
    """Return one text per row, of the fields whose weight is not 0: a model that reads texts has no
    other use for weights.
    """
    if is_matrix(columns):
        raise TypeError("this model reads texts, and got features")
    if not isinstance(columns, dict):
        return joined(columns)
    used = {f: c for f, c in columns.items() if weights is None or weights.get(f, 0.0)}
    if not used:
        raise ValueError("no field of these texts has a weight above 0")
    return joined(used)


def rows_of(columns: Columns, vectorizer: Any, weights: Mapping[str, float] | None) -> Any:
    """Return features (n, d) of columns, by a fitted vectoriser; see the formula above. Texts,
    where the model reads them itself.
    """
    if sp.issparse(columns) and columns.shape[1] == getattr(vectorizer, "n_columns_", None):
        return as_features(columns)  # rows that this Tfidf has made
    if is_matrix(columns) != isinstance(vectorizer, GivenFeatures):
        have, want = ("features", "texts") if is_matrix(columns) else ("texts", "features")
        raise TypeError(f"this tagger was fitted on {want}, and got {have}")
    if isinstance(vectorizer, PlainTexts):
        return vectorizer.transform(_weighed(columns, weights))
    if not isinstance(columns, dict):
        rows = vectorizer.transform(columns)
        return rows if isinstance(rows, sp.csr_matrix) else sp.csr_matrix(rows)
    total: sp.csr_matrix | None = None
    for field, column in columns.items():
        weight = 1.0 if weights is None else weights.get(field, 0.0)
        if weight:
            part = vectorizer.transform(column) * weight
            total = part if total is None else total + part
    if total is None:
        raise ValueError("no field of these texts has a weight above 0")
    return sp.csr_matrix(total)
