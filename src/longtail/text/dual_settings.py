"""Settings of dual encoders: defaults, presets, and what is refused."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from longtail._validation import as_k
from longtail.text.index import INDEXES
from longtail.text.ranker import FRUGAL

if TYPE_CHECKING:
    from longtail.text.dual_encoder import DualEncoder

__all__ = ["DEFAULTS", "LOSSES", "MARGINS", "PRESETS", "check_settings", "setting"]

LOSSES = ("decoupled", "supcon", "triplet")
# What a parameter of None stands for: chosen for UniDEC on dev rows of TIB-SID-en and on a held-out
# tenth of DebDeps-src, one at a time (docs/label-texts.md); a preset replaces some.
DEFAULTS: dict[str, Any] = {
    "loss": "decoupled",
    "temperature": 0.05,
    "to_labels": 0.5,
    "positives": 3,
    "pick": "some",
    "negatives": 6,
    "period": 5,
    "clusters": "none",
    "epochs": 10,
    "batch_size": 512,
    "learning_rate": 2e-4,
    "head_learning_rate": 2e-4,
    "weight_decay": 0.01,
    "max_length": 192,
}
MARGINS = {"dual": 0.1, "classifier": 0.2, "both": 0.3}  # of labels without rows, by answer
PRESETS: dict[str, dict[str, Any]] = {
    "depsl": {
        "loss": "decoupled",
        "positives": 2,
        "negatives": 6,
        "period": 5,
        "mine_from": 1,
        "clusters": "batch",
        "learning_rate": 1e-4,
    },
    "ngame": {
        "loss": "triplet",
        "positives": 1,
        "pick": "one",
        "negatives": 0,
        "period": 5,
        "mine_from": 1,
        "clusters": (10, 20, 25, 50, 75, 100, 125, 150, 175, 200, 225),
        "epochs": 300,
        "batch_size": 1600,
        "to_labels": 1.0,
    },
}
FRUGAL_DEFAULTS: dict[str, Any] = {
    "epochs": 20,
    "learning_rate": 3e-3,
    "head_learning_rate": 1e-3,
    "max_length": 64,
}


def setting(model: DualEncoder, name: str, defaults: dict[str, Any]) -> Any:
    """Return what None stands for in a parameter of a dual encoder."""
    preset = PRESETS.get(model.preset or "", {})
    if name == "mine_from" and name not in preset:
        return model._setting("epochs") // 2 + 1
    frugal = FRUGAL_DEFAULTS if model.encoder in FRUGAL else {}
    return {**defaults, **frugal, **preset}[name]


def check_settings(model: DualEncoder) -> None:
    """Raise ValueError or TypeError for settings of a dual encoder that cannot be."""
    if model.preset is not None and model.preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {model.preset!r}")
    for name, choices in (("loss", LOSSES), ("pick", ("one", "some")), ("index", INDEXES)):
        value = model._setting(name)
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    for name in ("positives", "period", "mine_from"):
        as_k(model._setting(name), name)
    for name in ("width", "pool_size"):
        if getattr(model, name) is not None:
            as_k(getattr(model, name), name)
    negatives = model._setting("negatives")
    if not isinstance(negatives, Integral) or negatives < 0:
        raise ValueError(f"negatives must be a whole number from 0 on, got {negatives!r}")
    _check_clusters(model._setting("clusters"))
    _number(model._setting("temperature"), "temperature", above=0)
    _number(model._setting("to_labels"), "to_labels", to=1)
    _number(model.margin, "margin")
    if model.new_label_margin is not None:
        _number(model.new_label_margin, "new_label_margin")


def _check_clusters(clusters: Any) -> None:
    if clusters in ("batch", "none"):
        return
    if isinstance(clusters, str) or not all(isinstance(epoch, Integral) for epoch in clusters):
        raise ValueError(f"clusters must be 'batch', 'none' or a list of epochs, got {clusters!r}")


def _number(value: Any, name: str, *, above: float | None = None, to: float = math.inf) -> None:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    small = value < 0 if above is None else value <= above
    if small or not value <= to or math.isinf(value):
        where = f"from 0 to {to:g}" if to < math.inf else "above 0" if above == 0 else "from 0 on"
        raise ValueError(f"{name} must be a number {where}, got {value!r}")
