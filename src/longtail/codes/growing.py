"""Labels that come to a ``MACH`` model: a new label is a row of buckets, nothing else.

What its buckets have learned, they have learned from other labels. Hashed at random, a new label
says nothing of itself; put into the buckets that its examples light up, it is found wherever labels
it resembles are; and a few steps of training teach the buckets the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail._validation import as_k, as_labels
from longtail.answers.vocabulary import grown_names
from longtail.codes.estimators import NETWORKS
from longtail.deep.network import one_label_each

if TYPE_CHECKING:
    from longtail.codes.mach import MACH

__all__ = ["CHUNK", "add_labels", "fine_tune"]

CHUNK = 1 << 25  # bucket scores held at a time


def add_labels(
    model: MACH,
    X: Any,
    Y: Any,
    Y_old: Any,
    negatives: tuple[Any, Any] | None,
    names: Sequence[str] | None,
) -> None:
    """Add labels to a fitted model, as ``MACH.add_labels`` says."""
    model._check_fitted()
    buckets, further = None, None
    if negatives is not None:
        if not (isinstance(negatives, (tuple, list)) and len(negatives) == 2):
            raise TypeError("negatives must be a pair (X, Y) of further rows and their labels")
        further = negatives[0]
    if Y is None:
        count = as_k(X, "the number of new labels")
    else:
        X = model._rows(X)
        Y = as_labels(Y, n_rows=X.shape[0])
        count = Y.shape[1]
        if Y_old is not None:
            as_labels(Y_old, n_rows=X.shape[0], n_labels=model.n_labels_)
    vocabulary = grown_names(model.label_names_, names, count)
    if count == 0:
        return
    if Y is not None:
        buckets = _resembling(model, X, Y, further)
    model.__dict__.pop("_active_code", None)
    model.code_ = model.code_.with_labels(count, buckets)
    model.n_labels_ = model.code_.n_labels_
    model.label_names_ = vocabulary


def fine_tune(model: MACH, X: Any, Y: Any, *, epochs: int = 1) -> None:
    """Train the networks of a fitted model further, as ``MACH.fine_tune`` says."""
    model._check_fitted()
    X = model._rows(X)
    Y = as_labels(Y, n_rows=X.shape[0], n_labels=model.n_labels_)
    if not all(isinstance(member, NETWORKS) for member in model.repetitions_.values()):
        raise TypeError("fine_tune needs networks: fit a linear model anew")
    tuned = {}
    for r, network in model.repetitions_.items():
        targets = model.code_.encode_repetition(Y, r)
        tuned[r] = network.fine_tuned(model._features(X, r), targets, epochs=epochs)
    model.repetitions_ = tuned
    model.one_label_ = model.one_label_ and one_label_each(Y)


def _resembling(model: MACH, X: Any, Y: Any, negatives: Any) -> np.ndarray:
    """Return buckets (m, R) of the new labels that the columns of ``Y`` are; (m, B) numbers at a
    time.
    """
    if model.missing_repetitions_:
        raise ValueError("some repetitions are not trained: merge the model first")
    n, further = X.shape[0], None
    if negatives is not None:
        further = model._rows(negatives)
        n += further.shape[0]
    counts = np.asarray(Y.sum(axis=0), dtype=np.float64).ravel()
    others = n > counts.max(initial=0)  # are there rows to stand out from?
    buckets = model.code_.with_labels(Y.shape[1]).table_[model.code_.n_labels_ :].copy()
    for r in model.repetitions_:
        total = np.zeros(model.code_.n_buckets_)
        sums = np.zeros((Y.shape[1], len(total)))
        for rows, values in _values(model, X, r):
            total += values.sum(axis=0, dtype=np.float64)
            sums += Y[rows].T @ values
        for _, values in () if further is None else _values(model, further, r):
            total += values.sum(axis=0, dtype=np.float64)
        sums /= np.maximum(counts, 1e-30)[:, None]
        sums -= total / n if others else 0
        buckets[counts > 0, r] = sums.argmax(axis=1)[counts > 0]
    return buckets  # type: ignore[no-any-return]


def _values(model: MACH, X: Any, repetition: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield how probable each bucket is, (m, B) in [0, 1], for some rows after the others."""
    classifier = model.repetitions_[repetition]
    classifier.n_jobs = model.n_jobs
    step = max(64, CHUNK // model.code_.n_buckets_)
    for begin in range(0, X.shape[0], step):
        rows = slice(begin, begin + step)
        scores = classifier.decision_function(model._features(X[rows], repetition))
        if model._bucket_link() == "softmax":
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            yield rows, scores / scores.sum(axis=1, keepdims=True)
        else:
            yield rows, 1 / (1 + np.exp(-np.clip(scores, -30, 30)))
