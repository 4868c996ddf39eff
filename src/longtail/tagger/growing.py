"""New labels for a fitted tagger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail._protocols import grows_labels
from longtail._validation import check_same_rows
from longtail.answers import Vocabulary
from longtail.data.label_lists import label_lists
from longtail.decide.rule import CountingRule, LearningRule
from longtail.tagger.abilities import cannot
from longtail.tagger.fields import check_weights
from longtail.tagger.seen import row_keys

if TYPE_CHECKING:
    from longtail.tagger.tagger import Tagger

__all__ = ["announce", "teach"]


def announce(tagger: Tagger, label_texts: Mapping[str, str]) -> None:
    """Add labels that have a name and a text, and no rows."""
    _check_grows(tagger)
    if not getattr(tagger.model_, "reads_label_texts", False):
        raise cannot(
            tagger.model_, "labels by what they are called alone: give texts that have them"
        )
    new = _as_label_texts(label_texts)
    known = [name for name in new if name in tagger.vocabulary_]
    if known or not new:
        what = f"the label {known[0]!r} is known" if known else "no label is new"
        raise ValueError(f"{what}: name the labels that this model does not have")
    tagger.model_.add_labels(label_texts=list(new.values()))
    _grown(tagger, new, np.zeros(len(new), np.int64))


def teach(
    tagger: Tagger, texts: Any, labels: Any, label_texts: Mapping[str, str] | None = None
) -> None:
    """Add the labels of texts, as ``Tagger.add_labels`` does."""
    _check_grows(tagger)
    called = {} if label_texts is None else _as_label_texts(label_texts)
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
    how = {}
    if getattr(tagger.model_, "reads_label_texts", False):
        how["label_texts"] = [called.get(name, name) for name in new]
    tagger.model_.add_labels(X, Y, Y_old=known, **how)
    counts = np.bincount(Y.indices, minlength=len(new)).astype(np.int64)
    _grown(tagger, {name: called.get(name, "") for name in new}, counts)
    tagger.n_rows_ += X.shape[0]
    if tagger.seen_ is not None:
        keys, has_key = row_keys(tagger._columns(texts), check_weights(tagger.field_weights))
        tagger.seen_ = tagger.seen_.with_rows(keys[has_key])


def _check_grows(tagger: Tagger) -> None:
    if not grows_labels(tagger.model_):
        raise cannot(tagger.model_, "new labels")
    if isinstance(tagger.rule_, LearningRule):
        raise ValueError(
            f"{type(tagger.rule_).__name__} was learned for the labels there are: fit anew, or "
            "take a rule that learns nothing"
        )


def _as_label_texts(label_texts: Any) -> dict[str, str]:
    if not isinstance(label_texts, Mapping):
        raise TypeError(f"label_texts must be a mapping from name to text, got {label_texts!r}")
    for name, text in label_texts.items():
        if not isinstance(name, str) or not name or not isinstance(text, str):
            raise TypeError(f"label_texts must map names to texts, got {name!r}: {text!r}")
    return dict(label_texts)


def _grown(tagger: Tagger, new: Mapping[str, str], counts: np.ndarray) -> None:
    """Take note of labels that the model has learned: their texts by name, and their rows."""
    if tagger.label_texts_ is not None or any(new.values()):
        before = tagger.label_texts_ or [""] * len(tagger.vocabulary_)
        tagger.label_texts_ = [*before, *new.values()]
    tagger.vocabulary_ = Vocabulary([*tagger.vocabulary_.names, *new])
    tagger.label_counts_ = np.concatenate([tagger.label_counts_, counts])
    if isinstance(tagger.rule_, CountingRule):
        tagger.rule_.reset(len(tagger.vocabulary_))
    tagger.__dict__.pop("_inverse_propensity", None)
    tagger.report_ = None  # it spoke of another label set
