"""Labels that come to ``NearestNeighbors``, and go: rows are what it knows, so new rows are all it
takes.

A row that the model has already gets its new labels where it is; every other row comes after the
last, with its old and its new labels. So the result is the model of all rows, fitted at once::

    rows it has     a b c │          labels    a: 0    b: 1    c: 0 1  │
    rows that come    b   │ d  e               b: 1 2                  │  d: 2   e: 0 2
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail._native import csr_args
from longtail._validation import as_features, as_label_ids, as_labels
from longtail.answers.vocabulary import grown_names, names_without
from longtail.baselines.scaling import scale_rows

if TYPE_CHECKING:
    from longtail.baselines.neighbors import NearestNeighbors

__all__ = ["add_labels", "remove_labels"]


def add_labels(
    model: NearestNeighbors, X: Any, Y: Any, Y_old: Any, negatives: Any, names: Any
) -> None:
    """Add labels to a fitted model, as ``NearestNeighbors.add_labels`` says."""
    model._check_fitted()
    n_old = model.n_labels_
    X, new, old = _given(model, X, Y, Y_old)
    if negatives is not None:
        if not (isinstance(negatives, (tuple, list)) and len(negatives) == 2):
            raise TypeError("negatives must be a pair (X, Y) of further rows and their labels")
        further, _, their = _given(model, negatives[0], None, negatives[1])
        X = _stacked(X, further)
        old = sp.vstack([old, their], format="csr")
        new = sp.vstack([new, sp.csr_matrix((further.shape[0], new.shape[1]), dtype=np.float32)])
    vocabulary = grown_names(model.label_names_, names, new.shape[1])
    if new.shape[1] == 0:
        return
    rows = model._training_rows()
    n_rows = rows.shape[0]
    normalized = model.exponent_ is None
    if normalized:
        X = scale_rows(X).rows  # as those of the model are
    place = _places(_keys(rows), _keys(X))
    fresh = place >= n_rows
    known = sp.csr_matrix(model.labels_[2::-1], shape=(n_rows, n_old))
    known = sp.vstack([known, sp.csr_matrix(old)[fresh]], format="csr")
    come = sp.csr_matrix(new).tocoo()
    come = sp.csr_matrix((come.data, (place[come.row], come.col)), (known.shape[0], new.shape[1]))
    model._keep(_stacked(rows, X[fresh]), sp.hstack([known, come], format="csr"), normalized)
    model.n_labels_, model.label_names_ = n_old + new.shape[1], vocabulary


def remove_labels(model: NearestNeighbors, labels: Any) -> None:
    """Take labels out of a fitted model, as ``NearestNeighbors.remove_labels`` says."""
    model._check_fitted()
    gone = np.zeros(model.n_labels_, bool)
    gone[as_label_ids(labels, model.n_labels_)] = True
    if gone.all():
        raise ValueError("a model without labels has nothing to answer: keep one at least")
    known = sp.csr_matrix(model.labels_[2::-1], shape=(len(model.row_weights_), model.n_labels_))
    model.labels_ = csr_args(known[:, ~gone])
    model.n_labels_ = int((~gone).sum())
    model.label_names_ = names_without(model.label_names_, gone)


def _given(model: NearestNeighbors, X: Any, Y: Any, Y_old: Any) -> tuple[Any, Any, Any]:
    """Return checked rows as the model keeps its own, their new labels and their old ones."""
    X = as_features(X, n_features=model.n_features_in_)
    n = X.shape[0]
    if model.blocks_ is not None and sp.issparse(X):
        X = X.toarray()
    elif model.blocks_ is None:
        X = sp.csr_matrix(X)
    none = sp.csr_matrix((n, model.n_labels_), dtype=np.float32)
    old = none if Y_old is None else as_labels(Y_old, n_rows=n, n_labels=model.n_labels_)
    return X, None if Y is None else as_labels(Y, n_rows=n), old


def _places(keys: list[bytes], come: list[bytes]) -> np.ndarray:
    """Return where each row that comes is among all rows afterwards, (m,) int64.

    Equal rows are paired in order, each with another one.
    """
    there: dict[bytes, deque[int]] = defaultdict(deque)
    for i, key in enumerate(keys):
        there[key].append(i)
    out, last = np.empty(len(come), np.int64), len(keys)
    for i, key in enumerate(come):
        if there[key]:
            out[i] = there[key].popleft()
        else:
            out[i], last = last, last + 1
    return out


def _stacked(above: Any, below: Any) -> Any:
    return sp.vstack([above, below], "csr") if sp.issparse(above) else np.vstack([above, below])


def _keys(rows: Any) -> list[bytes]:
    """Return what tells each row apart."""
    if not sp.issparse(rows):
        return [row.tobytes() for row in rows]
    ids, values = rows.indices.astype(np.int32, copy=False), rows.data
    spans = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [ids[a:b].tobytes() + values[a:b].tobytes() for a, b in spans]
