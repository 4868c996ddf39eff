"""What ``Tagger.fit`` does before and around the training of its model."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._protocols import has_parameters
from longtail._validation import as_labels
from longtail.answers import Vocabulary
from longtail.augment import append_rows
from longtail.base import unfitted
from longtail.data.label_lists import is_label_matrix, label_lists
from longtail.data.row_filter import RowFilter
from longtail.features import Tfidf
from longtail.tagger.label_rows import LabelRows

__all__ = [
    "PARTS",
    "Labelled",
    "Plan",
    "Rows",
    "copied",
    "described",
    "fit_ranker",
    "named_labels",
    "unnamed",
]

PARTS = ("model", "held-out")  # folders of a checkpoint


@dataclass(frozen=True)
class Labelled:
    """Label names, what they are called in words (or None), and the label matrix ``Y`` (n, L)."""

    vocabulary: Vocabulary
    texts: list[str] | None
    Y: sp.csr_matrix

    def learnable(self, *, from_texts: bool) -> Labelled:
        """Return these without the labels that no row has (nor, with ``from_texts``, a text).

        Nothing can be learned about them, and a tree that has to place them somewhere is worse for
        all others. The model does not know them, so ``add_labels`` can teach them later.
        """
        has = np.bincount(self.Y.indices, minlength=self.Y.shape[1]) > 0
        if from_texts and self.texts is not None:
            has |= np.array([bool(text.strip()) for text in self.texts], bool)
        if has.all():
            return self
        kept = np.flatnonzero(has)
        names = [self.vocabulary.names[i] for i in kept]
        texts = None if self.texts is None else [self.texts[i] for i in kept]
        return Labelled(Vocabulary(names), texts, sp.csr_matrix(self.Y[:, kept]))


@dataclass(frozen=True)
class Plan:
    """What ``Tagger.fit`` fits, and on what.

    ``columns``: texts by field (or a list, or features); ``texts``: one per row; ``labels``: those
    that can be learned, ``n_left_out`` others; ``vectorizer`` and ``model``, not yet fitted, and
    ``why`` these; ``over``: what the features are.
    """

    columns: Any
    texts: list[str]
    labels: Labelled
    n_left_out: int
    vectorizer: Any
    model: Any
    why: str
    over: str

    def like(self, other: Plan) -> Plan:
        """Return this plan with vectoriser and model as another one has them."""
        made = sp.issparse(other.columns) and isinstance(other.vectorizer, Tfidf)  # and is fitted
        vectorizer = other.vectorizer if made else copied(other.vectorizer)
        return replace(self, vectorizer=vectorizer, model=other.model, why=other.why)


@dataclass(frozen=True)
class Rows:
    """A plan whose vectoriser is fitted, and the features ``X`` (n, d) that it makes.

    ``label_rows``: what is learned from label texts, if anything; ``seen``: the fingerprint of the
    texts, or None where they are not known.
    """

    plan: Plan
    X: Any
    label_rows: LabelRows | None
    seen: RowFilter | None

    def with_model(self, model: Any, why: str) -> Rows:
        """Return the same rows for another model."""
        return replace(self, plan=replace(self.plan, model=model, why=why))


def named_labels(labels: Any, names: Sequence[str] | None, texts: Sequence[str] | None) -> Labelled:
    """Return labels from lists of names, or from a matrix whose columns are ``names``."""
    if is_label_matrix(labels):
        if names is None:
            raise unnamed(labels)
        vocabulary = Vocabulary(names)
        Y = as_labels(labels, n_labels=len(vocabulary), name="labels")
    else:
        lists = label_lists(labels)
        vocabulary = Vocabulary.from_lists(lists) if names is None else Vocabulary(names)
        strangers = {name for row in lists for name in row if name not in vocabulary}
        if strangers:
            raise ValueError(
                f"the label {min(strangers)!r} is not one of the {len(vocabulary)} label_names "
                "(a whole number in a list is a name, 7 is '7': for ids, give a label matrix)"
            )
        Y = vocabulary.encode(lists)
    if texts is not None and len(texts) != len(vocabulary):
        raise ValueError(f"there are {len(texts)} label_texts for {len(vocabulary)} labels")
    return Labelled(vocabulary, None if texts is None else list(texts), Y)


def unnamed(labels: Any) -> TypeError:
    """Return the error for numbers without names."""
    if getattr(labels, "ndim", 2) == 1:
        return TypeError(
            "labels has one number per row: give one list of labels per row, as in [[7], [9]]"
        )
    return TypeError("labels is a matrix: say what its columns are called with label_names=")


def described(model: Any, labels: Labelled) -> list[str] | None:
    """Return what labels are called, for a model that reads it; their names, where that is all."""
    if not getattr(model, "reads_label_texts", False):
        return None
    return list(labels.vocabulary) if labels.texts is None else labels.texts


def fit_ranker(
    model: Any,
    X: Any,
    Y: sp.csr_matrix,
    label_rows: LabelRows | None,
    checkpoint: str | os.PathLike[str] | None,
    part: str,
    label_texts: list[str] | None = None,
    **options: Any,
) -> Any:
    """Fit the model on these rows and on those of label texts.

    Models that can keep what they have finished in the folder ``part`` of the checkpoint, and are
    told how many rows are no instances. ``label_texts``: for a model that reads them itself;
    ``options``: what else its ``fit`` takes.
    """
    takes = inspect.signature(model.fit).parameters
    how = options if label_texts is None else {**options, "label_texts": label_texts}
    if label_rows is not None:
        n = Y.shape[0]
        X, Y = append_rows(X, Y, *label_rows.made(Y))
        if "n_label_rows" in takes:
            how["n_label_rows"] = Y.shape[0] - n
    if checkpoint is not None and "checkpoint" in takes:
        how["checkpoint"] = Path(checkpoint) / part
    return model.fit(X, Y, **how)


def copied(estimator: Any) -> Any:
    """Return the same estimator, not fitted; a copy of an object that has no parameters."""
    if isinstance(estimator, type):
        raise TypeError(f"expected an estimator, got the class: write {estimator.__name__}()")
    if has_parameters(estimator):
        return unfitted(estimator)
    try:
        return copy.deepcopy(estimator)
    except Exception as error:
        raise TypeError(
            f"{estimator!r} cannot be copied ({error}), and fit leaves what it is given as it is: "
            "give the object get_params, or a __deepcopy__"
        ) from error
