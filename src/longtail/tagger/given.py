"""``GivenFeatures``: the vectoriser of data that comes as features and not as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail import persist
from longtail._validation import as_features
from longtail.base import Estimator

__all__ = ["GivenFeatures"]


class GivenFeatures(Estimator):
    """Passes rows of features on as they are, so that a ``Tagger`` serves them like texts.

    After ``fit``: ``n_features_in_``.

    >>> GivenFeatures().fit_transform([[1.0, 0.5]])
    array([[1. , 0.5]], dtype=float32)
    """

    type_tag = "given-features"

    n_features_in_: int

    def __init__(self) -> None:
        pass

    def fit(self, X: Any, y: Any = None) -> GivenFeatures:
        """Remember the width of the rows.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        y : object, default=None
            Ignored; for scikit-learn.
        """
        self.n_features_in_ = int(as_features(X).shape[1])
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Remember the width of the rows and return them.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        y : object, default=None
            Ignored; for scikit-learn.
        """
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Any:
        """Return the rows, refused if they are of another width.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        """
        self._check_fitted()
        return as_features(X, n_features=self.n_features_in_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return ``feature 0``, ``feature 1``, …

        Parameters
        ----------
        input_features : object, default=None
            Ignored; for scikit-learn.
        """
        self._check_fitted()
        return np.array([f"feature {i}" for i in range(self.n_features_in_)], dtype=object)

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.meta["n_features"] = self.n_features_in_
        return state

    def _set_state(self, state: persist.State) -> None:
        self.n_features_in_ = state.count("n_features")
