"""Labels of an ensemble that come and go: every member learns them, or forgets them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail._validation import as_label_ids, as_labels
from longtail.answers.vocabulary import Vocabulary, names_without
from longtail.base import Ranker

if TYPE_CHECKING:
    from longtail.ensemble.ensemble import Ensemble

__all__ = ["add_labels", "remove_labels"]


def add_labels(
    ensemble: Ensemble,
    X: Any = None,
    Y: Any = None,
    *,
    names: Sequence[str] | None = None,
    **how: Any,
) -> Ensemble:
    """Teach every member new labels ``Y`` (n, new) of rows ``X``; ``how`` as members take it."""
    known = ensemble.label_names_
    if (names is None) != (known is None):
        raise ValueError("either all labels have names or none: names are missing")
    rows = [None] * len(ensemble.members_) if X is None else ensemble._read_by_parts(X)
    negatives: list[Any] = [how.pop("negatives", None)] * len(rows)
    if negatives[0] is not None:
        others, their_labels = negatives[0]
        negatives = [(own, their_labels) for own in ensemble._read_by_parts(others)]
    changed = []
    for model, own, others in zip(ensemble.members_, rows, negatives, strict=True):
        grow = copy.copy(model).add_labels  # type: ignore[attr-defined]
        takes = signature(grow).parameters
        options = {n: v for n, v in how.items() if n in takes or n != "label_texts"}
        if others is not None:
            options["negatives"] = others
        given = (own, Y) if own is not None else ()
        changed.append(grow(*given, **options))
    longer = None if known is None else Vocabulary([*known, *(names or ())])
    n_new = changed[0].n_labels_ - ensemble.n_labels_
    if longer is not None and len(longer) != changed[0].n_labels_:
        raise ValueError(f"names must be one per new label ({n_new})")
    if ensemble.fusion_ is not None:
        counts = np.zeros(n_new, np.int64)
        if Y is not None:
            counts = np.bincount(as_labels(Y).indices, minlength=n_new)
        ensemble.fusion_ = ensemble.fusion_.with_labels(counts)
    return _with_members(ensemble, changed, longer)


def remove_labels(ensemble: Ensemble, labels: Any) -> Ensemble:
    """Make every member forget labels, given by their ids."""
    gone = np.zeros(ensemble.n_labels_, bool)
    gone[as_label_ids(labels, ensemble.n_labels_)] = True
    changed = [
        copy.copy(model).remove_labels(np.flatnonzero(gone))  # type: ignore[attr-defined]
        for model in ensemble.members_
    ]
    left = names_without(ensemble.label_names_, gone)
    if ensemble.fusion_ is not None:
        ensemble.fusion_ = ensemble.fusion_.without_labels(np.flatnonzero(gone).tolist())
    return _with_members(ensemble, changed, left)


def _with_members(ensemble: Ensemble, changed: list[Ranker], names: Vocabulary | None) -> Ensemble:
    """Take over members whose labels have changed: all of them or, after an error, none."""
    ensemble.members_ = changed
    ensemble.n_labels_, ensemble.label_names_ = changed[0].n_labels_, names
    return ensemble
