"""What every propensity model shares: one checked vector, its inverse, and how both are saved and
recorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail import persist
from longtail._validation import as_labels
from longtail.base import Estimator

__all__ = ["Propensity", "PropensityWarning", "label_counts", "model_name"]


class PropensityWarning(UserWarning):
    """A propensity was set by a rule instead of estimated, or an assumption behind it does not
    hold.
    """


class Propensity(Estimator):
    """A fitted vector ``propensity_`` (L,) float64 in (0, 1].

    Subclasses implement ``fit(Y, *, …)``, which takes the observed labels (n, L), and what else is
    known by name, and calls ``_store``.
    """

    propensity_: np.ndarray

    @property
    def inverse_(self) -> np.ndarray:
        """``1 / propensity_`` (L,): the weight of an observed label in propensity-scored metrics;
        at least 1.
        """
        self._check_fitted()
        return 1.0 / self.propensity_

    @property
    def n_labels_(self) -> int:
        """Number of labels."""
        self._check_fitted()
        return len(self.propensity_)

    def describe(self) -> dict[str, Any]:
        """Return what a reader needs to reproduce the vector: model, constants, range; JSON
        values.
        """
        self._check_fitted()
        p = self.propensity_
        return {
            "model": type(self).__name__,
            **self.get_params(deep=False),
            **self._facts(),
            "n_labels": len(p),
            "min": float(p.min()),
            "max": float(p.max()),
        }

    def _facts(self) -> dict[str, Any]:
        """Learned constants that ``describe`` and saved files should hold, as JSON values."""
        return {}

    def _arrays(self) -> dict[str, np.ndarray]:
        """Learned arrays to save besides ``propensity_``, by attribute name."""
        return {}

    def _store(self, propensity: Any) -> None:
        """Check and keep the vector. Nothing is clipped here: a model that clips says so where it
        does.
        """
        p = np.ascontiguousarray(propensity, dtype=np.float64)
        if p.ndim != 1 or not len(p):
            raise ValueError(f"propensities must be one number per label, got shape {p.shape}")
        bad = ~((p > 0) & (p <= 1))  # also catches NaN
        if bad.any():
            j = int(np.argmax(bad))
            raise ValueError(
                f"the propensity of label {j} is {p[j]:g}: a probability in (0, 1] is needed "
                f"({int(bad.sum())} of {len(p)} labels are outside)"
            )
        if p.min() < 1e-300:
            raise ValueError(f"the smallest propensity, {p.min():g}, has no finite inverse")
        p.flags.writeable = False
        self.propensity_ = p

    def _get_state(self) -> persist.State:
        return persist.State(
            type=self.type_tag,
            params=self.get_params(deep=False),
            arrays={"propensity_": self.propensity_, **self._arrays()},
            meta=self._facts(),
        )

    def _set_state(self, state: persist.State) -> None:
        self._store(state.arrays["propensity_"])
        for name, array in state.arrays.items():
            if name != "propensity_":
                setattr(self, name, array)
        for name, value in state.meta.items():
            setattr(self, f"{name}_", value)


def model_name(propensity: Any) -> str:
    """Return what a report calls a propensity: the class of a fitted model, or "given vector".

    A model is any object with ``inverse_``.

    >>> model_name([0.5, 1.0])
    'given vector'
    """
    # Not a protocol: ``inverse_`` is a property, which a class has before it is fitted.
    return type(propensity).__name__ if hasattr(propensity, "inverse_") else "given vector"


def label_counts(Y: Any) -> tuple[int, np.ndarray]:
    """Return ``(n, n_j)``: number of rows and positives of each label (L,) float64; a soft label
    counts with its value.
    """
    Y = as_labels(Y)
    if Y.shape[0] == 0 or Y.shape[1] == 0:
        raise ValueError(f"Y has the shape {Y.shape}: at least one row and one label are needed")
    counts = np.bincount(Y.indices, weights=Y.data, minlength=Y.shape[1])
    return int(Y.shape[0]), counts
