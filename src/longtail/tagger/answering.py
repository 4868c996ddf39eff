"""How a fitted tagger chooses its answers: search, rule, lean, threshold.

Texts are made into rows of features and searched ``BLOCK`` at a time, so that the rows of a million
texts are never there at once; rules and leans see all answers together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import let_pass
from longtail.answers import AnswerOptions, TopK
from longtail.features import Tfidf
from longtail.tagger.abilities import allowed, searching, without
from longtail.tagger.fields import Columns, check_weights, is_matrix, rows_of
from longtail.tagger.held_out import CANDIDATES
from longtail.tagger.names import label_ids
from longtail.tagger.tail import lean, scored

if TYPE_CHECKING:
    from longtail.tagger.tagger import Tagger

__all__ = ["answers_from", "rank", "rank_texts", "rows_to_rank"]

BLOCK = 1 << 17  # texts; search on many threads takes thousands of rows together on each of them


def rank(tagger: Tagger, X: sp.csr_matrix, options: AnswerOptions) -> TopK:
    """Return the answers to rows that ``Tagger.transform`` or ``rows_to_rank`` made."""
    return _rank(tagger, [X], options)


def rank_texts(tagger: Tagger, texts: Any, options: AnswerOptions) -> TopK:
    """Return the answers to texts."""
    return _rank(tagger, _blocks(tagger, tagger._columns(texts)), options)


def rows_to_rank(tagger: Tagger, texts: Any) -> Any:
    """Return what ``Tagger.transform`` returns, for ``rank`` alone: models do not look again at the
    columns of rows that ``Tfidf`` has just made, so nobody may change them.
    """
    return _rows(tagger, tagger._columns(texts))


def _rows(tagger: Tagger, columns: Columns) -> Any:
    X = rows_of(columns, tagger.vectorizer_, check_weights(tagger.field_weights))
    made = type(tagger.vectorizer_) is Tfidf and isinstance(columns, list)
    # What overflows is refused by the model.
    return let_pass(X, own=True) if made and np.isfinite(X.data).all() else X


def _blocks(tagger: Tagger, columns: Columns) -> Iterator[Any]:
    """Yield the rows of texts, so many at a time; a model that reads texts has batches of its own.

    What is no text is refused with its place among all: they are given to the vectoriser at once.
    """
    fields = columns if isinstance(columns, dict) else {"": columns}
    n = 0 if is_matrix(columns) else len(next(iter(fields.values())))
    if (
        n <= BLOCK
        or type(tagger.vectorizer_) is not Tfidf
        or not all(isinstance(text, str) for column in fields.values() for text in column)
    ):
        yield _rows(tagger, columns)
        return
    for start in range(0, n, BLOCK):
        part = {field: column[start : start + BLOCK] for field, column in fields.items()}
        yield _rows(tagger, part if isinstance(columns, dict) else part[""])


def _rank(tagger: Tagger, blocks: Iterable[Any], options: AnswerOptions) -> TopK:
    k = min(options.k, len(tagger.vocabulary_))
    search = searching(tagger.model_)
    filters = {}
    for name, names in (("include", options.include), ("exclude", options.exclude)):
        if names is not None:
            filters[name] = label_ids(tagger.vocabulary_, names, name)
    allowed(tagger.model_, filters)
    plain = tagger.rule_ is None and not options.tail
    tops = [search(X, k if plain else max(k, CANDIDATES), **filters) for X in blocks]
    top = tops[0] if len(tops) == 1 else TopK.stacked(tops, tops[0].n_labels)
    if not plain:
        top = answers_from(tagger, top, k, options.tail, filters)
    return top if options.threshold is None else without(top, options.threshold)


def answers_from(
    tagger: Tagger,
    candidates: TopK,
    k: int,
    tail: float,
    filters: Mapping[str, Any] | None = None,
) -> TopK:
    """Return the rule's choice among the candidates, then the lean."""
    top = candidates
    if tagger.rule_ is not None:
        # Some rules fill up with labels that are no candidates, so they are told too.
        top = scored(tagger.rule_.select(candidates, **(filters or {})), candidates)
    if tail:
        top = lean(top, tagger.inverse_propensity(), tail, k)
    return top.head(k).padded(min(k, len(tagger.vocabulary_)))
