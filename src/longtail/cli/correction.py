"""``--missing-labels``: a named model that is trained for labels that were never recorded."""

from __future__ import annotations

from typing import Any

__all__ = ["corrected_model"]


def corrected_model(name: str, propensity: str, correction: str, **settings: Any) -> Any:
    """Return the model ``name`` with these settings, corrected by propensities of this formula.

    Every tree of an ensemble is. Refuses models that have no correction, and "auto": which model
    that is, and whether it has one, is not known before the data is read.
    """
    from longtail.linear.train.missing_labels import check_correction
    from longtail.propensity import JainPropensity
    from longtail.tagger import make_model

    if propensity != "jain":
        raise ValueError(f"--missing-labels: expected jain, got {propensity!r}")
    model = None if name == "auto" else make_model(name, **settings)
    members = getattr(model, "models", [model])
    if not all(hasattr(member, "missing_labels") for member in members):
        raise ValueError(
            f"--missing-labels goes with --model one-vs-all, xr-linear or ensemble, not {name}"
        )
    for member in members:
        check_correction(correction, member.loss)
        member.set_params(missing_labels=JainPropensity(), correction=correction)
    return model
