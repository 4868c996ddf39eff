"""Inner nodes of a tree that has grown: taught to send rows to new labels, or halved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from longtail._native import n_threads
from longtail._validation import as_seed
from longtail.linear.grow.arranging import arranged, indicator, install, node_of_label
from longtail.linear.grow.new_labels import Rows
from longtail.linear.search.layer import Layer
from longtail.linear.train.label_weights import LabelWeights
from longtail.linear.train.level import (
    LevelProblem,
    all_rows,
    by_column,
    level_cost,
    ones_of,
    train_level,
)
from longtail.tree.clustering import cluster_order
from longtail.tree.label_features import pifa
from longtail.tree.shape import balanced_shape

if TYPE_CHECKING:
    from longtail.linear.ranker import LinearRanker

__all__ = ["split_node", "teach"]

_OTHERS = 0.25  # rows without new labels for each row with one
_NEW = 2.0**-20  # marks a new label where one is counted beside old ones


def teach(model: LinearRanker, rows: Rows, home: np.ndarray) -> list[Layer]:
    """Return the inner layers, trained on so that they send the rows of new labels to them.

    The dual solution of a node is known from its weights: at the optimum, row i has the variable
    ``a_i = 2 C max(0, 1 - y_i w.x_i)``. So training can go on with some of the rows, those that
    have a new label and some others, while the variables of all others stay as they are.
    A row that has become positive gives back its variable as a negative first. Rows that have old
    labels are taken as known to the model, rows that have none as new.
    """
    layers = list(model.layers_[:-1])
    options = model._options()
    seed = as_seed(model.random_state)
    if not layers or options.chosen_solver != "dual":
        return layers
    has_new = np.diff(rows.new.indptr) > 0
    others = np.random.default_rng(seed).permutation(np.flatnonzero(~has_new))
    own = np.concatenate([np.flatnonzero(has_new), others[: int(_OTHERS * has_new.sum())]])
    own.sort()
    X, old, new = rows.X[own], rows.old[own], rows.new[own]
    labels = sp.hstack([old, new], format="csr")
    labels.data = np.where(labels.indices < model.n_labels_, 1, _NEW).astype(np.float32)
    node = np.concatenate([node_of_label(model), home])
    each = model._label_weights(new.shape[1])
    threads = n_threads(model.n_jobs)
    # Differences that are small beside the threshold of the weights themselves do not matter.
    coarse = replace(
        options,
        threshold=0.5 * options.threshold,
        prune_budget=None,
    )
    for t in reversed(range(len(layers))):
        layer = layers[t]
        n_parents = len(layer.child_ptr) - 1
        parent = np.repeat(np.arange(n_parents), np.diff(layer.child_ptr))
        counts = by_column(labels @ indicator(node, layer.n_children))
        above = (
            by_column(labels @ indicator(parent[node], parent[-1] + 1)) if t else all_rows(len(own))
        )
        begin = layer.weights(model.n_features_in_)
        C = level_cost(model.C, t, len(model.layers_))
        positive, negative, of_rows = each.of_nodes(node, layer.n_children, labels)
        problem = LevelProblem(
            parents=above,
            child_ptr=layer.child_ptr,
            positives=ones_of(counts),
            relevance=of_rows,
            positive_cost=C * positive,
            negative_cost=C * negative,
            start=(begin, layer.arrays["bias"]),
            known=(np.diff(old.indptr) > 0, counts.data >= 0.5),
        )
        moved = train_level(X, problem, coarse, seed=(seed + t) % 2**64, n_threads=threads)
        weights = (begin + moved.weights(model.n_features_in_)).tocsr()
        weights.data[np.abs(weights.data) < options.threshold] = 0
        weights.eliminate_zeros()
        bias = layer.arrays["bias"] + moved.arrays["bias"]
        built = Layer.from_csr(weights, bias, layer.child_ptr, threads)
        layers[t] = built.with_precision(layer.precision)
        node = parent[node]
    return layers


def split_node(model: LinearRanker, X: sp.csr_matrix, Y: sp.csr_matrix, node: int) -> None:
    """Halve the labels below a last inner node by balanced 2-means, and train the halves."""
    *_, inner, last = model.layers_
    low, high = (int(at) for at in last.child_ptr[node : node + 2])
    labels = model.label_of_leaf_[low:high]
    seed = as_seed(model.random_state)
    order = cluster_order(
        pifa(X, Y[:, labels].tocsr(), max_features_per_label=256, n_jobs=model.n_jobs),
        balanced_shape([2, high - low]),
        seed=seed,
        n_jobs=model.n_jobs,
    )
    middle = low + (high - low + 1) // 2
    leaves = np.arange(last.n_children)
    leaves[low:high] = low + order
    ptr = np.insert(last.child_ptr, node + 1, middle)
    parent = int(np.searchsorted(inner.child_ptr, node, side="right")) - 1
    first, end = last.child_ptr[inner.child_ptr[parent : parent + 2]]
    siblings = model.label_of_leaf_[first:end]
    if len(inner.child_ptr) == 2:  # below the root every row counts, labelled or not
        own = np.arange(X.shape[0])
    else:
        own = np.flatnonzero(np.diff(Y[:, siblings].tocsr().indptr))
    halves = np.full(model.n_labels_, -1)
    halves[labels[order[: middle - low]]], halves[labels[order[middle - low :]]] = 0, 1
    inside = np.flatnonzero(halves >= 0)
    sides = sp.csr_matrix(
        (np.ones(len(inside), np.float32), (inside, halves[inside])), shape=(model.n_labels_, 2)
    )
    positives = ones_of(by_column(Y[own] @ sides))
    each = model._label_weights()
    each = LabelWeights(each.positive[inside], each.negative[inside])
    C = level_cost(model.C, len(model.layers_) - 2, len(model.layers_))
    positive, negative, of_rows = each.of_nodes(halves[inside], 2, Y[own][:, inside].tocsr())
    problem = LevelProblem(
        parents=all_rows(len(own)),
        child_ptr=np.array([0, 2]),
        positives=positives,
        relevance=of_rows,
        positive_cost=C * positive,
        negative_cost=C * negative,
    )
    threads = n_threads(model.n_jobs)
    halved = train_level(X[own], problem, model._options(), seed=seed + node, n_threads=threads)
    nodes = np.arange(inner.n_children)
    pick = np.concatenate([nodes[:node], inner.n_children + np.arange(2), nodes[node + 1 :]])
    above = inner.child_ptr + (np.arange(len(inner.child_ptr)) > parent)
    layers = [
        *model.layers_[:-2],
        arranged(model, [inner, halved], pick, above),
        arranged(model, [last], leaves, ptr),
    ]
    install(model, layers, model.label_of_leaf_[leaves])
