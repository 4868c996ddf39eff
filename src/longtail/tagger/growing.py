"""New labels for a fitted tagger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longtail._validation import check_same_rows
from longtail.data import Vocabulary
from longtail.data.label_lists import label_lists
from longtail.tagger.abilities import cannot
from longtail.tagger.fields import check_weights
from longtail.tagger.seen import row_keys

if TYPE_CHECKING:
    from longtail.tagger.tagger import Tagger

__all__ = ["teach"]


def teach(tagger: Tagger, texts: Any, labels: Any) -> None:
    """``Tagger.add_labels``."""
    if not hasattr(tagger.model_, "add_labels"):
        raise cannot(tagger.model_, "learn new labels")
    if hasattr(tagger.rule_, "fit"):
        raise ValueError(
            f"{type(tagger.rule_).__name__} was learned for the labels there are: fit anew, or "
            "take a rule that learns nothing"
        )
    lists = label_lists(labels)
    found = Vocabulary.from_lists(lists)
    known_names = tagger.vocabulary_
    new = [name for name in found if name not in known_names]
    if not new:
        raise ValueError("no label is new: all of them are known to this model")
    X = tagger.transform(texts)
    check_same_rows(X.shape[0], len(lists), "texts", "labels")
    Y = Vocabulary(new).encode(lists, unknown="ignore")
    known = known_names.encode(lists, unknown="ignore")
    tagger.model_.add_labels(X, Y, Y_old=known)
    counts = np.bincount(Y.indices, minlength=len(new)).astype(np.int64)
    tagger.vocabulary_ = Vocabulary([*known_names.names, *new])
    tagger.label_counts_ = np.concatenate([tagger.label_counts_, counts])
    tagger.n_rows_ += X.shape[0]
    if tagger.seen_ is not None:
        keys, has_key = row_keys(tagger._columns(texts), check_weights(tagger.field_weights))
        tagger.seen_ = tagger.seen_.with_rows(keys[has_key])
    if tagger.label_texts_ is not None:
        tagger.label_texts_ = [*tagger.label_texts_, *([""] * len(new))]
    if hasattr(tagger.rule_, "reset"):
        tagger.rule_.reset(len(tagger.vocabulary_))
    tagger.__dict__.pop("_inverse_propensity", None)
    tagger.report_ = None  # it spoke of another label set
