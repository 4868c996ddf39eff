"""``explain`` and ``label_profile``: what linear models can say about themselves."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._validation import as_features, as_k
from longtail.features.unit_length import unit_rows
from longtail.linear.explain.explanation import Explanation, PathLevel, path_transforms
from longtail.linear.explain.node_weights import node_weights, path_to
from longtail.linear.explain.profile import LabelProfile, by_weight, siblings_by_cosine
from longtail.linear.search.post_processing import post_processors
from longtail.linear.shards import check_whole

if TYPE_CHECKING:
    from longtail.linear.ranker import LinearRanker

__all__ = ["explain", "label_profile"]


def explain(
    model: LinearRanker, x: Any, label: int | str, *, feature_names: Sequence[str] | None = None
) -> Explanation:
    """Return which features of one row speak for a label, as ``LinearRanker.explain`` says."""
    check_whole(model)
    features, values = _one_row(model, x)
    _check_names(feature_names, model.n_features_in_)
    label = _label_id(model, label)
    transforms, product = path_transforms(
        *post_processors(model.post_processor, len(model.layers_))
    )
    levels = []
    path = path_to(model.layers_, _leaf_of(model, label))
    for layer, node, g in zip(model.layers_, path, transforms, strict=True):
        own, weights, bias = node_weights(layer, node, features)
        contributions = weights.astype(np.float64) * values[np.searchsorted(features, own)]
        levels.append(PathLevel.of(node, bias, own, contributions, g))
    return Explanation.of(
        label,
        levels,
        product=product,
        label_name=None if model.label_names_ is None else model.label_names_[label],
        feature_names=feature_names,
    )


def label_profile(
    model: LinearRanker,
    label: int | str,
    *,
    n_nearest: int = 10,
    feature_names: Sequence[str] | None = None,
) -> LabelProfile:
    """Return what makes a label, as ``LinearRanker.label_profile`` says."""
    check_whole(model)
    _check_names(feature_names, model.n_features_in_)
    label = _label_id(model, label)
    *above, leaf = path_to(model.layers_, _leaf_of(model, label))
    features, weights, bias = by_weight(model.layers_[-1], leaf)
    near, cosines = siblings_by_cosine(
        model.layers_[-1], leaf, model.n_features_in_, as_k(n_nearest, "n_nearest")
    )
    nearest = model.label_of_leaf_[near]
    names = model.label_names_
    return LabelProfile(
        label=label,
        label_name=None if names is None else names[label],
        features=features,
        weights=weights,
        bias=bias,
        groups=tuple(
            by_weight(layer, node)[:2] for layer, node in zip(model.layers_, above, strict=False)
        ),
        nearest=nearest,
        similarities=cosines,
        nearest_names=None if names is None else [names[int(i)] for i in nearest],
        feature_names=feature_names,
    )


def _one_row(model: LinearRanker, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and values of a single row, scaled as search scales it."""
    if not sp.issparse(x) and not isinstance(x, BlockRows) and not hasattr(x, "columns"):
        x = np.asarray(x)
        x = x.reshape(1, -1) if x.ndim == 1 else x
    row = sp.csr_matrix(as_features(x, n_features=model.n_features_in_, name="x"))
    if row.shape[0] != 1:
        raise ValueError(f"x must be a single row, got {row.shape[0]}")
    if model.normalize:
        row = unit_rows(row, 1)
    return row.indices, row.data.astype(np.float64)


def _label_id(model: LinearRanker, label: int | str) -> int:
    if isinstance(label, str):
        if model.label_names_ is None:
            raise ValueError(
                f"the model knows no names, {label!r} among them: call name_labels first"
            )
        return model.label_names_.id(label)
    if isinstance(label, bool) or not isinstance(label, numbers.Integral):
        raise TypeError(f"label must be an id or a name, got {label!r}")
    if not 0 <= label < model.n_labels_:
        raise ValueError(f"label {label} does not exist: there are {model.n_labels_} labels")
    return int(label)


def _leaf_of(model: LinearRanker, label: int) -> int:
    found = np.flatnonzero(model.label_of_leaf_ == label)
    if not len(found):
        raise ValueError(f"label {label} is not in the model any more")
    return int(found[0])


def _check_names(names: Sequence[str] | None, n_features: int) -> None:
    if names is not None and len(names) != n_features:
        raise ValueError(f"{len(names)} feature_names were given for {n_features} features")
