"""``explain`` and ``label_profile``: what linear models can say about themselves."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._validation import as_features, as_k
from longtail.answers.vocabulary import Vocabulary
from longtail.features.unit_length import unit_rows
from longtail.linear.explain.explanation import Explanation, PathLevel, path_transforms
from longtail.linear.explain.node_weights import node_weights, path_to
from longtail.linear.explain.profile import LabelProfile, by_weight, siblings_by_cosine
from longtail.linear.search.layer import Layer
from longtail.linear.search.post_processing import post_processors
from longtail.linear.shards import check_whole

__all__ = ["Explaining"]


class Explaining:
    """Mixed into models that are layers of linear classifiers."""

    layers_: list[Layer]
    label_of_leaf_: np.ndarray
    label_names_: Vocabulary | None
    n_features_in_: int
    n_labels_: int
    normalize: bool
    post_processor: str | Sequence[str]

    def explain(
        self, x: Any, label: int | str, *, feature_names: Sequence[str] | None = None
    ) -> Explanation:
        """Return which features of one row speak for a label and which against, along its path.

        ``x``: one row of features; ``label``: its id, or its name after ``name_labels``. The parts
        sum to the score (``linear.explain.explanation`` has the formula). The label need not be
        among the answers.

        >>> import longtail as lt
        >>> model = lt.OneVsAll().fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], [[0], [1], [0]])
        >>> why = model.explain([1.0, 0.0], 0)
        >>> bool(abs(why.baseline + why.shares.sum() - why.score) < 1e-6)
        True
        """
        check_whole(self)
        features, values = self._one_row(x)
        _check_names(feature_names, self.n_features_in_)
        label = self._label_id(label)
        transforms, product = path_transforms(
            *post_processors(self.post_processor, len(self.layers_))
        )
        levels = []
        path = path_to(self.layers_, self._leaf_of(label))
        for layer, node, g in zip(self.layers_, path, transforms, strict=True):
            own, weights, bias = node_weights(layer, node, features)
            contributions = weights.astype(np.float64) * values[np.searchsorted(features, own)]
            levels.append(PathLevel.of(node, bias, own, contributions, g))
        return Explanation.of(
            label,
            levels,
            product=product,
            label_name=None if self.label_names_ is None else self.label_names_[label],
            feature_names=feature_names,
        )

    def label_profile(
        self, label: int | str, *, n_nearest: int = 10, feature_names: Sequence[str] | None = None
    ) -> LabelProfile:
        """Return a label's strongest features, those of its groups, and its nearest labels.

        Labels are near by the cosine of their weights, among the labels of the same group (all of
        them, in ``OneVsAll``).
        """
        check_whole(self)
        _check_names(feature_names, self.n_features_in_)
        label = self._label_id(label)
        *above, leaf = path_to(self.layers_, self._leaf_of(label))
        features, weights, bias = by_weight(self.layers_[-1], leaf)
        near, cosines = siblings_by_cosine(
            self.layers_[-1], leaf, self.n_features_in_, as_k(n_nearest, "n_nearest")
        )
        nearest = self.label_of_leaf_[near]
        names = self.label_names_
        return LabelProfile(
            label=label,
            label_name=None if names is None else names[label],
            features=features,
            weights=weights,
            bias=bias,
            groups=tuple(
                by_weight(layer, node)[:2] for layer, node in zip(self.layers_, above, strict=False)
            ),
            nearest=nearest,
            similarities=cosines,
            nearest_names=None if names is None else [names[int(i)] for i in nearest],
            feature_names=feature_names,
        )

    def _one_row(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return features (ascending) and values of a single row, scaled as search scales it."""
        if not sp.issparse(x) and not isinstance(x, BlockRows) and not hasattr(x, "columns"):
            x = np.asarray(x)
            x = x.reshape(1, -1) if x.ndim == 1 else x
        row = sp.csr_matrix(as_features(x, n_features=self.n_features_in_, name="x"))
        if row.shape[0] != 1:
            raise ValueError(f"x must be a single row, got {row.shape[0]}")
        if self.normalize:
            row = unit_rows(row, 1)
        return row.indices, row.data.astype(np.float64)

    def _label_id(self, label: int | str) -> int:
        if isinstance(label, str):
            if self.label_names_ is None:
                raise ValueError(
                    f"the model knows no names, {label!r} among them: call name_labels first"
                )
            return self.label_names_.id(label)
        if isinstance(label, bool) or not isinstance(label, numbers.Integral):
            raise TypeError(f"label must be an id or a name, got {label!r}")
        if not 0 <= label < self.n_labels_:
            raise ValueError(f"label {label} does not exist: there are {self.n_labels_} labels")
        return int(label)

    def _leaf_of(self, label: int) -> int:
        found = np.flatnonzero(self.label_of_leaf_ == label)
        if not len(found):
            raise ValueError(f"label {label} is not in the model any more")
        return int(found[0])


def _check_names(names: Sequence[str] | None, n_features: int) -> None:
    if names is not None and len(names) != n_features:
        raise ValueError(f"{len(names)} feature_names were given for {n_features} features")
