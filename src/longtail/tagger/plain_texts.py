"""``PlainTexts``: the vectoriser of models that read texts themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail import persist
from longtail.base import Estimator
from longtail.data.text_rows import TextRows
from longtail.features.tokenizer import as_texts

__all__ = ["PlainTexts"]


class PlainTexts(Estimator):
    """Passes texts on as they are, as rows that can be cut like those of a matrix.

    >>> PlainTexts().fit_transform(["a text", "another"]).shape
    (2,)
    """

    type_tag = "plain-texts"

    n_texts_: int

    def __init__(self) -> None:
        pass

    def fit(self, X: Any, y: Any = None) -> PlainTexts:
        """Learn nothing.

        Parameters
        ----------
        X : list of str
            Texts.
        y : object, default=None
            Ignored; for scikit-learn.
        """
        self.n_texts_ = len(as_texts(X, "texts"))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> TextRows:
        """Return the texts as rows.

        Parameters
        ----------
        X : list of str
            Texts.
        y : object, default=None
            Ignored; for scikit-learn.
        """
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> TextRows:
        """Return the texts as rows.

        Parameters
        ----------
        X : list of str
            Texts.
        """
        return TextRows(as_texts(X, "texts"))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return no names: there are no features.

        Parameters
        ----------
        input_features : object, default=None
            Ignored; for scikit-learn.
        """
        return np.array([], dtype=object)

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        state.meta["n_texts"] = self.n_texts_
        return state

    def _set_state(self, state: persist.State) -> None:
        self.n_texts_ = state.count("n_texts")
