"""From the parameters of a model to an objective: the only place that knows losses by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.deep.objectives.binary import Binary
from longtail.deep.objectives.objective import Objective
from longtail.deep.objectives.regression import ErrorLength, SquaredError
from longtail.deep.objectives.softmax import Softmax
from longtail.deep.objectives.weighting import CORRECTIONS, PICKS

__all__ = ["named"]

_BASES = {
    "sigmoid": "logistic",
    "squared_hinge": "squared_hinge",
    "hinge": "hinge",
    "squared_error": "squared_error",
}
_REGRESSIONS = {"squared": SquaredError, "length": ErrorLength}


def named(
    loss: str,
    *,
    reduction: str = "rows",
    correction: str | None = None,
    propensity: np.ndarray | None = None,
    seed: int = 0,
) -> Objective:
    """Return the objective of a loss: "sigmoid", "squared_hinge", "hinge", "squared_error" or
    "softmax" of labels, "squared" or "length" of a regression.

    ``correction`` of ``longtail.deep.objectives.weighting`` for labels that are observed with
    ``propensity`` (L,); "auto" is "pal-n" for a softmax and "surrogate" for the others.
    """
    if loss in _REGRESSIONS:
        return _REGRESSIONS[loss](reduction=reduction)
    if loss != "softmax" and loss not in _BASES:
        raise ValueError(f"there is no loss {loss!r}")
    if propensity is None:
        correction = None
    elif correction == "auto":
        correction = "pal-n" if loss == "softmax" else "surrogate"
    if correction is not None and correction not in CORRECTIONS:
        raise ValueError(
            f"correction must be auto or one of {', '.join(CORRECTIONS)}, got {correction!r}"
        )
    settings: dict[str, Any] = {
        "reduction": reduction,
        "correction": correction,
        "propensity": propensity,
        "seed": seed,
    }
    if loss != "softmax":
        return Binary(base=_BASES[loss], **settings)
    if correction is not None and correction not in PICKS:
        raise ValueError(
            f"correction={correction!r} is for losses of single labels: a softmax takes "
            f"{', '.join(PICKS)}"
        )
    return Softmax(**settings)
