"""Which estimator stands behind a code: by name, by example, or by what is installed."""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from typing import Any

from longtail import persist
from longtail._validation import as_features
from longtail.base import Estimator, unfitted
from longtail.codes.ridge import Ridge
from longtail.deep import Network
from longtail.exceptions import ModelFormatError
from longtail.linear import OneVsAll
from longtail.text import TextNetwork

__all__ = [
    "NETWORKS",
    "REGRESSION",
    "bucket_estimator",
    "code_estimator",
    "from_part",
    "prototype_of",
    "prototype_state",
    "rows_for",
    "sizes",
]

logger = logging.getLogger(__name__)

# A compromise of what was best on held-out rows of four data sets
# (benchmarks/coded/tune.py).
REGRESSION = {"learning_rate": 5e-3, "dropout": 0.0, "weight_decay": 0.3, "epochs": 10}
NETWORKS = (Network, TextNetwork)  # what learns targets, and goes on learning
_CLASSES = {cls.type_tag: cls for cls in (OneVsAll, Ridge, *NETWORKS)}


def bucket_estimator(estimator: Any) -> OneVsAll | Network | TextNetwork:
    """Return an unfitted classifier of buckets: a ``OneVsAll``, ``Network`` or ``TextNetwork``."""
    return _choose(estimator, OneVsAll)  # type: ignore[no-any-return]


def code_estimator(estimator: Any) -> Ridge | Network | TextNetwork:
    """Return an unfitted regressor of codes: a ``Ridge``, ``Network`` or ``TextNetwork``.

    By name, the network takes smaller steps, fewer of them, and no dropout.
    """
    regressor = _choose(estimator, Ridge)
    if isinstance(regressor, Network) and not isinstance(estimator, Network):
        regressor.set_params(**REGRESSION)
    return regressor  # type: ignore[no-any-return]


def _choose(estimator: Any, linear: type[Estimator]) -> Any:
    if estimator is None:
        estimator = "network" if find_spec("torch") else "linear"
        if estimator == "linear":
            logger.warning(
                "torch is not installed: using a linear estimator (say estimator='linear' to "
                "choose it, or pip install 'longtail[deep]' for the network)"
            )
    if isinstance(estimator, (linear, *NETWORKS)):
        return unfitted(estimator)
    if isinstance(estimator, str) and estimator in ("linear", "network"):
        return linear() if estimator == "linear" else Network()
    raise ValueError(
        f"estimator must be 'linear', 'network', a {linear.__name__}, a Network or a TextNetwork, "
        f"got {estimator!r}"
    )


def from_part(state: persist.State) -> Any:
    """Return the fitted estimator of a part of a saved model."""
    if state.type not in _CLASSES:
        raise ModelFormatError(f"a coded model cannot hold a {state.type!r}")
    return _CLASSES[state.type]._from_state(state)  # type: ignore[attr-defined]


def prototype_state(estimator: Any) -> persist.State:
    """Return the parameters of an unfitted estimator, to be saved with a coded model."""
    params = estimator.get_params(deep=False)
    if isinstance(params.get("encoder"), os.PathLike):
        params["encoder"] = os.fspath(params["encoder"])
    return persist.State(estimator.type_tag, params)


def prototype_of(state: persist.State) -> Any:
    """Return the unfitted estimator that ``prototype_state`` described."""
    if state.type not in _CLASSES:
        raise ModelFormatError(f"a coded model cannot be made with a {state.type!r}")
    return _CLASSES[state.type](**state.params)


def sizes(estimator: Any) -> tuple[int, int]:
    """Return how many features (or tokens) and outputs a fitted estimator has."""
    if isinstance(estimator, Ridge):
        return estimator.coef_.shape  # type: ignore[no-any-return]
    return estimator.n_features_in_, estimator.n_labels_


def rows_for(prototype: Any, fitted: Any, X: Any, n_features: int | None) -> Any:
    """Return inputs in the canonical form of the estimator behind a code: features, or tokens.

    ``fitted``: the trained estimator, None before there is one.
    """
    reader = prototype if fitted is None else fitted
    if getattr(reader, "reads_texts", False):
        return reader._rows(X, fitted=fitted is not None)
    return as_features(X, n_features=n_features)
