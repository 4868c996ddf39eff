"""Models that live on: labels come, go and change without training the others again.

A new label is a new leaf. It goes below the node to which the trained tree already sends its rows
(the highest score summed over them), and its classifier is trained there like any other: its own
rows against those of the labels beside it. The nodes above are moved as little as it takes to send
its rows there; the classifiers of old labels stay as they are. A node that has grown too large is
halved, and only the two new nodes are trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail._native import n_threads
from longtail._validation import as_features, as_k, as_label_ids, as_labels
from longtail.answers.vocabulary import grown_names, names_without
from longtail.features.unit_length import unit_rows
from longtail.linear.grow.arranging import arranged, install
from longtail.linear.grow.inner_nodes import split_node, teach
from longtail.linear.grow.new_labels import Rows, find_homes, train_labels
from longtail.linear.shards import check_whole

if TYPE_CHECKING:
    from longtail.linear.ranker import LinearRanker

__all__ = ["PER_LABEL", "add_labels", "partial_fit", "remove_labels"]

PER_LABEL = ("propensity_", "positive_weight_", "negative_weight_")


def add_labels(
    model: LinearRanker,
    X: Any,
    Y: Any,
    Y_old: Any,
    negatives: tuple[Any, Any] | None,
    names: Sequence[str] | None,
    split_above: int | None,
) -> None:
    """Add labels to a fitted model, as ``LinearRanker.add_labels`` says."""
    check_whole(model)
    rows = _read_rows(model, X, Y, Y_old, negatives)
    vocabulary = grown_names(model.label_names_, names, rows.new.shape[1])
    largest = int(np.diff(model.layers_[-1].child_ptr).max())
    limit = 2 * largest if split_above is None else as_k(split_above, "split_above")
    n_old, n_new = model.n_labels_, rows.new.shape[1]
    if n_new == 0:
        return
    home = find_homes(model, rows)
    trained, arrival = train_labels(model, rows, home)
    above = teach(model, rows, home)
    layer = model.layers_[-1]
    owner = np.repeat(np.arange(len(layer.child_ptr) - 1), np.diff(layer.child_ptr))
    owner = np.concatenate([owner, home[arrival]])
    pick = np.argsort(owner, kind="stable")
    labels = np.concatenate([model.label_of_leaf_, n_old + arrival])[pick]
    ptr = np.searchsorted(owner[pick], np.arange(len(layer.child_ptr)))
    grown = arranged(model, [layer, trained], pick, ptr)
    model.n_labels_ = n_old + n_new
    model.label_names_ = vocabulary
    for name, values in _per_label(model):
        fresh = 1.0 if name == "propensity_" else model._weight_of_new(name[:-1])
        setattr(model, name, np.append(values, np.full(n_new, fresh)))
    install(model, [*above, grown], labels.astype(np.int32))
    if len(model.layers_) > 1:
        together = sp.hstack([rows.old, rows.new], format="csr")
        while (np.diff(model.layers_[-1].child_ptr) > limit).any():
            split_node(model, rows.X, together, int(np.diff(model.layers_[-1].child_ptr).argmax()))


def remove_labels(model: LinearRanker, labels: Sequence[int] | np.ndarray) -> None:
    """Take labels out of a fitted model, as ``LinearRanker.remove_labels`` says."""
    check_whole(model)
    gone = np.zeros(model.n_labels_, bool)
    gone[as_label_ids(labels, model.n_labels_)] = True
    if gone.all():
        raise ValueError("a model without labels has nothing to answer: keep one at least")
    if model.kept_rows_ is not None:
        model.kept_rows_ = model.kept_rows_.without(gone)
    number = np.cumsum(~gone) - 1
    keep = np.flatnonzero(~gone[model.label_of_leaf_])
    names = number[model.label_of_leaf_[keep]]
    layers = list(model.layers_)
    for t in reversed(range(len(layers))):  # nodes that lose all children go as well
        ptr = np.searchsorted(keep, layers[t].child_ptr)
        alive = np.flatnonzero(np.diff(ptr)) if t else np.zeros(1, np.int64)
        layers[t] = arranged(model, [layers[t]], keep, np.append(0, ptr[1:][alive]))
        keep = alive
    model.n_labels_ = int((~gone).sum())
    model.label_names_ = names_without(model.label_names_, gone)
    for name, values in _per_label(model):
        setattr(model, name, values[~gone])
    install(model, layers, names.astype(np.int32))


def partial_fit(model: LinearRanker, X: Any, Y: Any, labels: Any = None) -> None:
    """Train some labels of a fitted model anew, as ``LinearRanker.partial_fit`` says."""
    check_whole(model)
    X = _features(model, X)
    Y = as_labels(Y, n_rows=X.shape[0], n_labels=model.n_labels_)
    if Y.shape[1] != model.n_labels_:
        raise ValueError(f"Y must have a column for each of {model.n_labels_} labels")
    changed = np.unique(Y.indices) if labels is None else as_label_ids(labels, model.n_labels_)
    if len(changed) == 0:
        return
    layer = model.layers_[-1]
    leaf = np.empty(model.n_labels_, np.int64)
    leaf[model.label_of_leaf_] = np.arange(model.n_labels_)
    home = np.searchsorted(layer.child_ptr, leaf[changed], side="right") - 1
    # An empty parent begins where the next one does: the last of equal offsets has the child.
    rows = Rows(X, Y, Y[:, changed].tocsr())
    trained, arrival = train_labels(model, rows, home, positive=changed)
    pick = np.arange(layer.n_children)
    pick[leaf[changed[arrival]]] = layer.n_children + np.arange(len(changed))
    grown = arranged(model, [layer, trained], pick, layer.child_ptr)
    install(model, [*model.layers_[:-1], grown], model.label_of_leaf_)


def _read_rows(
    model: LinearRanker, X: Any, Y: Any, Y_old: Any, negatives: tuple[Any, Any] | None
) -> Rows:
    if Y_old is None and negatives is None and model.kept_rows_ is not None:
        negatives = model.kept_rows_.with_labels(model.n_labels_)
    if Y_old is None and negatives is None:
        raise ValueError(
            "old rows are needed as negatives, or the new labels would be answered everywhere: "
            "give Y_old, the old labels of these rows, or negatives=(X, Y), rows without the "
            "new labels (or fit with keep_rows=, and the model keeps some)"
        )
    X = _features(model, X)
    new = as_labels(Y, n_rows=X.shape[0])
    none = sp.csr_matrix((X.shape[0], model.n_labels_), dtype=np.float32)
    old = none
    if Y_old is not None:
        old = as_labels(Y_old, n_rows=X.shape[0], n_labels=model.n_labels_)
    if negatives is not None:
        if not (isinstance(negatives, (tuple, list)) and len(negatives) == 2):
            raise TypeError("negatives must be a pair (X, Y): further rows and their old labels")
        more = _features(model, negatives[0])
        its = as_labels(negatives[1], n_rows=more.shape[0], n_labels=model.n_labels_)
        X = sp.vstack([X, more], format="csr")
        old = sp.vstack([old, its], format="csr")
        empty = sp.csr_matrix((more.shape[0], new.shape[1]), dtype=np.float32)
        new = sp.vstack([new, empty], format="csr")
    return Rows(X, old, new)


def _features(model: LinearRanker, X: Any) -> sp.csr_matrix:
    X = as_features(X, n_features=model.n_features_in_)
    X = sp.csr_matrix(X) if not sp.issparse(X) else X
    return unit_rows(X, n_threads(model.n_jobs)) if model.normalize else X


def _per_label(model: LinearRanker) -> list[tuple[str, np.ndarray]]:
    """Return the names and values of what the model holds for every label."""
    found = [(name, getattr(model, name)) for name in PER_LABEL]
    return [(name, values) for name, values in found if values is not None]
