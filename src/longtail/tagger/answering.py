"""How a fitted tagger chooses its answers: search, rule, lean, threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from longtail.answers import AnswerOptions, TopK
from longtail.tagger.abilities import allowed, searching, without
from longtail.tagger.held_out import CANDIDATES
from longtail.tagger.names import label_ids
from longtail.tagger.tail import lean, scored

if TYPE_CHECKING:
    from longtail.tagger.tagger import Tagger

__all__ = ["answers_from", "rank"]


def rank(tagger: Tagger, X: sp.csr_matrix, options: AnswerOptions) -> TopK:
    """Return the answers to rows that ``Tagger.transform`` made."""
    k = min(options.k, len(tagger.vocabulary_))
    search = searching(tagger.model_)
    filters = {}
    for name, names in (("include", options.include), ("exclude", options.exclude)):
        if names is not None:
            filters[name] = label_ids(tagger.vocabulary_, names, name)
    allowed(tagger.model_, filters)
    if tagger.rule_ is None and not options.tail:
        top = search(X, k, **filters)
    else:
        candidates = search(X, max(k, CANDIDATES), **filters)
        top = answers_from(tagger, candidates, k, options.tail, filters)
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
