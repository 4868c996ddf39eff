"""Outputs for labels that come to a fitted ``TextNetwork``: linear classifiers of its vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_labels
from longtail.answers.vocabulary import Vocabulary, grown_names
from longtail.linear import OneVsAll

if TYPE_CHECKING:
    from longtail.text.text_network import TextNetwork

__all__ = ["new_outputs"]


def new_outputs(
    model: TextNetwork, X: Any, Y: Any, Y_old: Any, negatives: Any, names: Any
) -> tuple[np.ndarray, np.ndarray, Vocabulary | None]:
    """Return weights (m, e) and biases (m,) of the new labels ``Y`` (n, m), and the names of all.

    Each is a logistic regression on the vectors of the texts given: those of its own rows against
    all others.
    """
    tokens = model._rows(X)
    Y = as_labels(Y, n_rows=len(tokens))
    if Y_old is not None:
        as_labels(Y_old, n_rows=len(tokens), n_labels=model.n_labels_)
    vocabulary = grown_names(model.label_names_, names, Y.shape[1])
    vectors = model._read(model._vectors(tokens))
    if negatives is not None:
        if not (isinstance(negatives, (tuple, list)) and len(negatives) == 2):
            raise TypeError("negatives must be a pair (X, Y) of further texts and their labels")
        further = model._read(model._vectors(model._rows(negatives[0])))
        vectors = np.concatenate([vectors, further])
        Y = sp.vstack([Y, sp.csr_matrix((len(further), Y.shape[1]), dtype=np.float32)]).tocsr()
    if not Y.shape[1]:
        return np.zeros((0, vectors.shape[1]), np.float32), np.zeros(0, np.float32), vocabulary
    weights, bias = _classifiers(vectors, Y, model.n_jobs)
    if model.output_index_ is not None:
        weights, bias = _cut(weights, vectors, Y, len(model.output_index_), model.n_jobs)
    return weights, bias, vocabulary


def _classifiers(
    vectors: np.ndarray, Y: sp.csr_matrix, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (m, e) and biases (m,) of a logistic regression per label."""
    fitted = OneVsAll(
        loss="logistic", normalize=False, threshold=0.0, n_jobs=n_jobs, random_state=0
    ).fit(vectors, Y)
    eye = np.vstack([np.zeros((1, vectors.shape[1])), np.eye(vectors.shape[1])]).astype(np.float32)
    scores = fitted.decision_function(eye)  # of the origin, and of every direction
    bias = scores[0]
    return np.ascontiguousarray((scores[1:] - bias).T), bias.copy()


def _cut(
    weights: np.ndarray, vectors: np.ndarray, Y: sp.csr_matrix, f: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return classifiers of the f inputs alone that weigh most for each label, fitted again."""
    out, bias = np.zeros_like(weights), np.zeros(len(weights), np.float32)
    kept = np.argsort(-np.abs(weights), axis=1, kind="stable")[:, :f]
    columns = sp.csc_matrix(Y)
    for label, inputs in enumerate(kept):
        some = np.ascontiguousarray(vectors[:, inputs])
        own, start = _classifiers(some, sp.csr_matrix(columns[:, [label]]), n_jobs)
        out[label, inputs], bias[label] = own[0], start[0]
    return out, bias
