"""``OutputPlan``: what an output layer is made of and how it learns, with everything checked."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Protocol

from longtail._validation import as_k

__all__ = ["PARAMETERS", "PRESETS", "HasOutputs", "OutputPlan", "Preset", "preset_of"]

PARAMETERS = ("output_precision", "fan_in", "preset", "output_options")  # of a model
PRECISIONS = ("float32", "bfloat16", "float8")
OPTIMISERS = ("adam", "sgd")
REDUCTIONS = ("rows", "sum", "mean")


class HasOutputs(Protocol):
    """A model whose parameters say what its output layer is like."""

    output_precision: str | None
    fan_in: int | None
    preset: str | None
    output_options: dict[str, Any] | None


@dataclass(frozen=True)
class OutputPlan:
    """Settings of an output layer; ``output_options`` of a model names them.

    All labels in full (``fan_in`` None):

    ``precision`` of the weights, which have no other copy: "float32", "bfloat16", "float8" (E4M3).
    ``optimiser``: "adam" (float32 alone) or "sgd", with ``momentum`` and, for weights of fewer
    bits, stochastic rounding; ``compensated``: the share of labels, most frequent first, whose
    rounding is compensated instead (Kahan).

    A few weights per label (``fan_in``): ``hidden``: the width of a layer of its own in front;
    ``rewire_every`` so many steps (None: never) the ``rewire_share`` of all weights that is
    smallest, or those below ``rewire_threshold``, read other inputs, up to the share
    ``rewire_until`` of all steps; ``keep_values``: they begin with the value they had, not with
    zero; ``reset``: the moments of their optimiser begin anew.

    ``auxiliary``: the weight g of a loss over clusters of labels, "(1 - g) main + g auxiliary",
    which falls to zero along half a cosine over ``auxiliary_epochs``; ``clusters``: how many.

    ``learning_rate`` and ``weight_decay`` of the layer (None: as the model has them);
    ``reduction``: losses are summed over labels and averaged over "rows", added up ("sum") or
    averaged over both ("mean").
    """

    precision: str = "float32"
    optimiser: str = "adam"
    momentum: float = 0.0
    compensated: float = 0.0
    learning_rate: float | None = None
    weight_decay: float | None = None
    reduction: str = "rows"
    fan_in: int | None = None
    hidden: int | None = None
    rewire_every: int | None = None
    rewire_share: float | None = 0.1
    rewire_threshold: float | None = None
    rewire_until: float = 1.0
    keep_values: bool = False
    reset: bool = True
    auxiliary: float = 0.0
    auxiliary_epochs: int = 0
    clusters: int | None = None

    @classmethod
    def of(cls, model: HasOutputs) -> OutputPlan:
        """Return the plan of a model's parameters: ``preset``, then ``output_options``, then
        ``output_precision`` and ``fan_in``.
        """
        options = dict(preset_of(model).options)
        given = model.output_options
        if given is not None and not isinstance(given, dict):
            raise TypeError(f"output_options must be a dict, got {given!r}")
        options |= given or {}
        for name, value in (("precision", model.output_precision), ("fan_in", model.fan_in)):
            if value is not None:
                options[name] = value
        names = [field.name for field in fields(cls)]
        for name in options:
            if name not in names:
                raise ValueError(f"output_options has no {name!r}: it knows {', '.join(names)}")
        if options.get("precision", "float32") != "float32":
            options.setdefault("optimiser", "sgd")
        return cls(**options)

    @property
    def plain(self) -> bool:
        """Whether this is the layer that there always was: float32, in full, by Adam."""
        return self.fan_in is None and self.optimiser == "adam" and not self.auxiliary

    def gentler(self) -> OutputPlan:
        """Return the plan of a training that goes on: a tenth of the rate, and nothing rewired."""
        rate = None if self.learning_rate is None else self.learning_rate / 10
        return replace(self, learning_rate=rate, rewire_every=None, auxiliary=0.0)

    def __post_init__(self) -> None:
        for name, choices in (
            ("precision", PRECISIONS),
            ("optimiser", OPTIMISERS),
            ("reduction", REDUCTIONS),
        ):
            if getattr(self, name) not in choices:
                what = "output_precision" if name == "precision" else name
                raise ValueError(
                    f"{what} must be one of {', '.join(choices)}, got {getattr(self, name)!r}"
                )
        for name in ("fan_in", "hidden", "rewire_every", "clusters"):
            if getattr(self, name) is not None:
                as_k(getattr(self, name), name)
        for name in ("momentum", "compensated", "auxiliary", "rewire_share", "rewire_until"):
            value = getattr(self, name)
            if value is not None and not 0 <= _number(value, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {value}")
        for name in ("learning_rate", "weight_decay", "rewire_threshold"):
            value = getattr(self, name)
            if value is not None and not 0 <= _number(value, name) < math.inf:
                raise ValueError(f"{name} must not be negative, got {value}")
        if not isinstance(self.auxiliary_epochs, Integral) or self.auxiliary_epochs < 0:
            raise ValueError(
                f"auxiliary_epochs must be a number of epochs, got {self.auxiliary_epochs!r}"
            )
        if self.precision != "float32" and self.optimiser == "adam":
            raise ValueError("Adam keeps float32 weights: use optimiser 'sgd' for fewer bits")
        if self.momentum == 1 or (self.momentum and self.optimiser == "adam"):
            raise ValueError("momentum is for optimiser 'sgd', and lies below 1")
        if self.fan_in is not None and (self.precision, self.optimiser) != ("float32", "adam"):
            raise ValueError("a layer with fan_in keeps float32 values and is trained by Adam")
        if self.fan_in is None and (self.hidden is not None or self.rewire_every is not None):
            raise ValueError("hidden and rewire_every are for a layer with fan_in")
        if self.compensated and self.precision == "float32":
            raise ValueError("compensated is for weights of 16 or 8 bits")
        if self.auxiliary and not self.auxiliary_epochs:
            raise ValueError("auxiliary needs auxiliary_epochs")


@dataclass(frozen=True)
class Preset:
    """``options`` of the output layer, and ``defaults`` of a model's parameters left at None."""

    options: dict[str, Any]
    defaults: dict[str, Any]


_FULL = {"optimiser": "sgd", "reduction": "sum", "learning_rate": 0.05, "weight_decay": 1e-4}
PRESETS = {
    # Jain et al. 2023, Zhang et al. 2025: their middle settings.
    "renee": Preset({**_FULL, "momentum": 0.9}, {"dropout": 0.7, "learning_rate": 5e-5}),
    "elmo-bf16": Preset(
        {**_FULL, "precision": "bfloat16"}, {"dropout": 0.7, "learning_rate": 5e-5}
    ),
    "elmo-fp8": Preset({**_FULL, "precision": "float8"}, {"dropout": 0.7, "learning_rate": 5e-5}),
    # End-to-end dynamic sparse training.
    "dst": Preset(
        {
            "fan_in": 128,
            "reduction": "sum",
            "learning_rate": 0.01,
            "weight_decay": 1e-4,
            "rewire_every": 300,
            "rewire_share": 0.15,
            "rewire_until": 0.66,
            "auxiliary": 0.4,
            "auxiliary_epochs": 5,
        },
        {"dropout": 0.5, "learning_rate": 1e-4, "epochs": 20},
    ),
}


def preset_of(model: HasOutputs) -> Preset:
    """Return the preset of a model, or an empty one."""
    if model.preset is None:
        return Preset({}, {})
    if model.preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {model.preset!r}")
    return PRESETS[model.preset]


def _number(value: Any, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return float(value)
