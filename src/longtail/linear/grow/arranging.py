"""Layers put together anew: children picked from several layers, and given back to a model."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from longtail._native import n_threads
from longtail.linear.search.layer import Layer

if TYPE_CHECKING:
    from longtail.linear.ranker import LinearRanker

__all__ = ["arranged", "indicator", "install", "node_of_label"]


def arranged(
    model: LinearRanker, layers: list[Layer], pick: np.ndarray, child_ptr: np.ndarray
) -> Layer:
    """Return the children ``pick`` of several layers, numbered one after the other, as a layer."""
    d = model.n_features_in_
    weights = sp.vstack([layer.weights(d) for layer in layers], format="csr")[pick]
    bias = np.concatenate([layer.arrays["bias"] for layer in layers])[pick]
    built = Layer.from_csr(weights, bias, child_ptr, n_threads(model.n_jobs))
    return built.with_precision(layers[0].precision)


def install(model: LinearRanker, layers: list[Layer], label_of_leaf: np.ndarray) -> None:
    """Put new layers into the model and, where it has one, its tree."""
    model._set_layers(layers, label_of_leaf)
    if model.tree_ is not None:  # a copy: the model may itself be one of a model that stays
        model.tree_ = copy.copy(model.tree_)._store(
            [layer.child_ptr for layer in layers], label_of_leaf
        )


def node_of_label(model: LinearRanker) -> np.ndarray:
    """Return the last inner node above each label, int64 (n_labels,)."""
    child_ptr = model.layers_[-1].child_ptr
    node = np.empty(model.n_labels_, np.int64)
    node[model.label_of_leaf_] = np.repeat(np.arange(len(child_ptr) - 1), np.diff(child_ptr))
    return node


def indicator(columns: np.ndarray, n_columns: int) -> sp.csr_matrix:
    """Return the CSR matrix (n, n_columns) with a one in column ``columns[i]`` of row i."""
    n = len(columns)
    ones = np.ones(n, np.float32)
    return sp.csr_matrix((ones, columns, np.arange(n + 1)), shape=(n, n_columns))
