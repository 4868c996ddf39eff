"""What every estimator shares: scikit-learn's parameter protocol, saved state, ranking.

The protocol is written here rather than inherited: importing scikit-learn takes longer than most of
our commands run, and ``sklearn.base.clone``, pipelines and grid search need only ``get_params`` and
``set_params``.
"""

from __future__ import annotations

import inspect
import os
from typing import Any, ClassVar, TypeVar

import numpy as np

from longtail import persist
from longtail._validation import as_features, as_k, as_labels
from longtail.data.topk import TopK

__all__ = ["Estimator", "NotFittedError", "Ranker"]

Self = TypeVar("Self", bound="Estimator")


class NotFittedError(ValueError, AttributeError):
    """``fit`` has not been called."""


class Estimator:
    """Keyword-only parameters stored by ``__init__``; learned state in attributes ending in ``_``.

    A subclass sets ``type_tag`` (its name in saved files) and implements ``_get_state`` and
    ``_set_state``.
    """

    type_tag: ClassVar[str]

    @classmethod
    def _param_names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep``, those of nested estimators as ``outer__inner``."""
        out: dict[str, Any] = {}
        for name in self._param_names():
            value = getattr(self, name)
            out[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                out.update({f"{name}__{key}": inner for key, inner in value.get_params().items()})
        return out

    def set_params(self: Self, **params: Any) -> Self:
        """Sets parameters by name (``outer__inner`` where nested); unknown names are refused."""
        known = self._param_names()
        for name, value in params.items():
            head, _, tail = name.partition("__")
            if head not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}"
                )
            if tail:
                getattr(self, head).set_params(**{tail: value})
            else:
                setattr(self, head, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, multi_output=True),
            classifier_tags=ClassifierTags(multi_label=True),
            input_tags=InputTags(sparse=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the fitted estimator to the directory ``path``, all of it or nothing."""
        self._check_fitted()
        persist.save(path, self._get_state(), overwrite=overwrite)

    def _get_state(self) -> persist.State:
        raise NotImplementedError(f"{type(self).__name__} cannot be saved")

    @classmethod
    def _from_state(cls: type[Self], state: persist.State) -> Self:
        self = cls(**state.params)
        self._set_state(state)
        return self

    def _set_state(self, state: persist.State) -> None:
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded")


class Ranker(Estimator):
    """An estimator that ranks labels.

    Subclasses implement ``_fit(X, Y)`` and ``_predict_topk(X, k)``. After ``fit``:
    ``n_features_in_``, ``n_labels_``.
    """

    n_features_in_: int
    n_labels_: int

    def fit(self: Self, X: Any, Y: Any) -> Self:
        """Learns from features ``X`` (n, d) and labels ``Y`` (n, L), any form of either."""
        X = as_features(X)
        Y = as_labels(Y, n_rows=X.shape[0])
        if X.shape[0] == 0:
            raise ValueError("X has no rows: nothing to learn from")
        if Y.shape[1] == 0:
            raise ValueError("Y has no labels: nothing to learn")
        self._fit(X, Y)  # type: ignore[attr-defined]
        self.n_features_in_ = int(X.shape[1])  # type: ignore[attr-defined]
        self.n_labels_ = int(Y.shape[1])  # type: ignore[attr-defined]
        return self

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """The k best labels of each row, best first; missing ones are padded with -1."""
        self._check_fitted()
        k = as_k(k)
        X = as_features(X, n_features=self.n_features_in_)
        found = self._predict_topk(X, min(k, self.n_labels_))
        return found if found.k == k else _pad(found, k)

    def predict(self, X: Any, k: int = 5) -> Any:
        """The k best labels of each row as a binary CSR matrix, as scikit-learn's tools expect."""
        return self.predict_topk(X, k).to_csr(binary=True)

    def _fit(self, X: Any, Y: Any) -> None:
        raise NotImplementedError

    def _predict_topk(self, X: Any, k: int) -> TopK:
        raise NotImplementedError


def _pad(top: TopK, k: int) -> TopK:
    n, have = len(top), top.k
    indices = np.full((n, k), -1, np.int32)
    scores = np.full((n, k), -np.inf, np.float32)
    indices[:, :have], scores[:, :have] = top.indices, top.scores
    return TopK._trusted(indices, scores, top.n_labels)
