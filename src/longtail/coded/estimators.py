"""Which estimator stands behind a code: by name, by example, or by what is installed."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Any

from longtail import persist
from longtail.base import Estimator
from longtail.coded.ridge import Ridge
from longtail.deep import Network
from longtail.exceptions import ModelFormatError
from longtail.linear import OneVsAll

__all__ = ["REGRESSION", "bucket_estimator", "code_estimator", "from_part"]

logger = logging.getLogger(__name__)

# A compromise of what was best on held-out rows of four data sets
# (benchmarks/coded/tune.py).
REGRESSION = {"learning_rate": 5e-3, "dropout": 0.0, "weight_decay": 0.3, "epochs": 10}
_CLASSES = {cls.type_tag: cls for cls in (OneVsAll, Network, Ridge)}


def bucket_estimator(estimator: Any) -> OneVsAll | Network:
    """An unfitted classifier of buckets: a ``OneVsAll`` or a ``Network``."""
    return _choose(estimator, OneVsAll)  # type: ignore[no-any-return]


def code_estimator(estimator: Any) -> Ridge | Network:
    """An unfitted regressor of codes: a ``Ridge`` or a ``Network``.

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
    if isinstance(estimator, (linear, Network)):
        return type(estimator)(**estimator.get_params(deep=False))
    if isinstance(estimator, str) and estimator in ("linear", "network"):
        return linear() if estimator == "linear" else Network()
    raise ValueError(
        f"estimator must be 'linear', 'network', a {linear.__name__} or a Network, "
        f"got {estimator!r}"
    )


def from_part(state: persist.State) -> Any:
    """The fitted estimator of a part of a saved model."""
    if state.type not in _CLASSES:
        raise ModelFormatError(f"a coded model cannot hold a {state.type!r}")
    return _CLASSES[state.type]._from_state(state)  # type: ignore[attr-defined]
