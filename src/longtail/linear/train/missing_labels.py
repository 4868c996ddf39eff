"""How linear models train under missing labels: what an observed label weighs, or aims at.

A binary problem of the solvers has, for every observed label, a cost and a target. The corrections
of ``longtail.losses`` that come down to these two numbers can be trained:

======================  ============================  ==============  ==========================
correction              cost of an observed label     target          losses
======================  ============================  ==============  ==========================
"surrogate"             ``2/p - 1``                   y               all
"surrogate+balance"     ``(2/p - 1) c(n)``            y               all
"balance+surrogate"     ``c(n/p)/p + 1/p - 1``        y               all
"unbiased"              1                             ``y/p``         logistic
"normalized"            1                             ``T``, bound    logistic
======================  ============================  ==============  ==========================

With a target t, a label costs ``t l(s, 1) + (1 - t) l(s, 0)``. For t > 1 the second term counts
negatively. The logistic loss stays convex, its ``l(s, 1) - l(s, 0) = -s`` being linear, and the
regulariser keeps the minimum finite; the hinge family does not stay convex, and is refused. PAL,
PAL-N and POL compare the scores of all labels, which one-vs-all problems cannot:
``longtail.Network`` trains with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist, propensity
from longtail.base import unfitted
from longtail.exceptions import ModelFormatError
from longtail.losses.row_weights import normalized_weights
from longtail.losses.weights import as_propensity, propensity_values, surrogate_weights

__all__ = [
    "CORRECTIONS",
    "Corrected",
    "check_correction",
    "corrected",
    "fitted_propensity",
    "put_parameter",
    "take_parameter",
]

CORRECTIONS = ("surrogate", "surrogate+balance", "balance+surrogate", "unbiased", "normalized")
_BALANCE = {"surrogate": None, "surrogate+balance": "after", "balance+surrogate": "before"}
_KINDS: tuple[type[propensity.Propensity], ...] = (
    propensity.DirectPropensity,
    propensity.FixedPropensity,
    propensity.JainPropensity,
    propensity.JointPropensity,
    propensity.RichardsPropensity,
)
_MODELS = {kind.type_tag: kind for kind in _KINDS}


@dataclass(frozen=True)
class Corrected:
    """``targets``: CSR (n, L) float32 on the support of the observed labels; ``weight`` (L,):
    multiplies the cost of an observed label.
    """

    targets: sp.csr_matrix
    weight: np.ndarray


def check_correction(correction: Any, loss: str | None) -> None:
    """Refuse what is no correction, or none that this loss can train with (None: any loss)."""
    if correction not in CORRECTIONS:
        hint = ""
        if str(correction).lower() in ("pal", "pal-n", "pol"):
            hint = " (this one compares all labels of a row: longtail.Network takes it)"
        raise ValueError(
            f"correction must be one of {', '.join(CORRECTIONS)}, got {correction!r}{hint}"
        )
    if loss not in (None, "logistic") and correction not in _BALANCE:
        raise ValueError(
            f"correction={correction!r} is not convex with loss={loss!r}: use loss='logistic', "
            "or correction='surrogate'"
        )


def fitted_propensity(missing_labels: Any, Y: sp.csr_matrix) -> np.ndarray:
    """Return propensities (L,) from the parameter; a ``JainPropensity`` that is not fitted yet is
    fitted on ``Y``.
    """
    model = missing_labels
    if isinstance(model, propensity.JainPropensity) and not model.__sklearn_is_fitted__():
        missing_labels = unfitted(model).fit(Y)
    return as_propensity(missing_labels, Y.shape[1], "missing_labels")


def corrected(Y: sp.csr_matrix, p: np.ndarray | None, correction: str) -> Corrected:
    """Return targets and weights of the observed labels ``Y`` (n, L) under propensities ``p``
    (L,).
    """
    n_labels = Y.shape[1]
    if p is None:
        return Corrected(Y, np.ones(n_labels))
    if correction in _BALANCE:
        counts = np.bincount(Y.indices, Y.data, minlength=n_labels)
        return Corrected(Y, surrogate_weights(p, counts, balance=_BALANCE[correction]))
    values = normalized_weights(Y, p).data if correction == "normalized" else Y.data / p[Y.indices]
    targets = sp.csr_matrix((values.astype(np.float32), Y.indices, Y.indptr), shape=Y.shape)
    return Corrected(targets, np.ones(n_labels))


def put_parameter(state: persist.State) -> None:
    """Move the parameter ``missing_labels`` out of the JSON values: arrays and models are none."""
    value = state.params.pop("missing_labels")
    if value is None:
        return
    if isinstance(value, propensity.Propensity):
        fitted = value.__sklearn_is_fitted__()
        bare = persist.State(value.type_tag, value.get_params(deep=False))
        state.parts["missing_labels"] = value._get_state() if fitted else bare
        return
    try:  # an array, or anybody's model
        state.arrays["missing_labels"] = propensity_values(value)
    except (TypeError, ValueError):
        raise TypeError(f"parameter missing_labels cannot be saved: {value!r}") from None


def take_parameter(state: persist.State) -> Any:
    """Return what ``put_parameter`` stored."""
    if "missing_labels" in state.arrays:
        return state.array("missing_labels", np.float64, (None,))
    part = state.parts.get("missing_labels")
    if part is None:
        return None
    if part.type not in _MODELS:
        raise ModelFormatError(f"{part.type!r} is no propensity model")
    model = _MODELS[part.type](**part.params)
    if part.arrays:
        model._set_state(part)
    return model
