"""Settings of ``XRTransformer``: the reference ones by data set, and what is chosen otherwise."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail._validation import as_k
from longtail.features import Tfidf
from longtail.text.ranker import FRUGAL

if TYPE_CHECKING:
    from longtail.text.xr_transformer import XRTransformer

__all__ = [
    "FEATURES",
    "LARGEST_LEVEL",
    "LONGEST",
    "PRESETS",
    "RESOLUTIONS",
    "automatic_leaf",
    "automatic_length",
    "automatic_steps",
    "check_settings",
    "setting",
    "steps_of",
]

FEATURES = ("both", "vectors", "tfidf")
RESOLUTIONS = ("all", "last")
LARGEST_LEVEL = 32_768  # nodes of a level that an encoder is fine-tuned on
_EPOCHS = (10, 40)  # fewest and most times through the rows, where steps are not given
_STEPS = 1000  # ... between which there are so many steps
LONGEST = 256  # tokens, where they are not given
_SHORTEST = 32

# Zhang et al. 2021, and the code published with it. ``rule`` and ``candidates`` are those of the
# ensemble of several encoders (``Ensemble.of_encoders``).
_SMALL: dict[str, Any] = {"most_active": 1000, "learning_rate": 5e-5, "output_learning_rate": None}
_LARGE: dict[str, Any] = {"most_active": 500, "learning_rate": 1e-4, "output_learning_rate": None}
_SMALL |= {"batch_size": 256, "bootstrap_cost": 100.0}
_LARGE |= {"batch_size": 256, "bootstrap_cost": 100.0}
_LARGE |= {"refined_leaf": 100, "refined_branching": 32, "max_length": 128}
PRESETS: dict[str, dict[str, Any]] = {
    "eurlex-4k": _SMALL
    | {
        "leaf": 16,
        "branching": 16,
        "min_codes": 16,
        "refined_leaf": 16,
        "refined_branching": 8,
        "steps": (600, 800, 1200),
        "warmup_steps": 100,
        "max_length": 128,
        "man_beam": 5,
        "positive_cost": 2.0,
        "negative_cost": 4.0,
        "upper_cost": 0.5,  # costs of 1 and 2 above the last level
        "beam": (75, 75, 100),
        "rule": "softmax",
        "candidates": 25,
    },
    "wiki10-31k": _SMALL
    | {
        "leaf": 16,
        "branching": 16,
        "min_codes": 128,
        "refined_leaf": 16,
        "refined_branching": 16,
        "steps": (1000, 1000, 400),
        "warmup_steps": 100,
        "max_length": 256,
        "man_beam": 20,
        "positive_cost": 4.0,
        "negative_cost": 1.0,
        "beam": 100,
        "rule": "rank",
        "candidates": 100,
    },
    "amazoncat-13k": _SMALL
    | {
        "leaf": 16,
        "branching": 8,
        "min_codes": 128,
        "refined_leaf": 16,
        "refined_branching": 8,
        "refined_min_codes": 128,
        "steps": (5000, 10_000, 30_000),
        "warmup_steps": 1000,
        "most_active": 10_000,
        "max_length": 256,
        "man_beam": 50,
        "positive_cost": 0.25,
        "negative_cost": 0.5,
        "threshold": 1e-4,
        "beam": (75, 100),
        "rule": "softmax",
        "candidates": 200,
    },
    "wiki-500k": _LARGE
    | {
        "leaf": 16,
        "branching": 8,
        "min_codes": 64,
        "steps": (10_000, 10_000, 20_000, 20_000),
        "warmup_steps": 5000,
        "man_beam": 5,
        "positive_cost": 4.0,
        "negative_cost": 1.0,
        "beam": 50,
        "rule": "sigmoid",
        "candidates": 50,
    },
    "amazon-670k": _LARGE
    | {
        "leaf": 32,
        "branching": 16,
        "min_codes": 128,
        "steps": (4000, 4000, 12_000),
        "warmup_steps": 200,
        "man_beam": 5,
        "positive_cost": 1.0,
        "negative_cost": 1.0,
        "cost_weights": None,
        "bootstrap_counts": False,
        "beam": 75,
        "rule": "softmax",
        "candidates": 75,
    },
    "amazon-3m": _LARGE
    | {
        "leaf": 100,
        "branching": 16,
        "min_codes": 128,
        "steps": (10_000, 10_000, 10_000),
        "warmup_steps": 1000,
        "man_beam": 20,
        "positive_cost": 8.0,
        "negative_cost": 1.0,
        "bootstrap_counts": False,
        "beam": 50,
        "rule": "rank",
        "candidates": 50,
    },
}
# What a parameter of None stands for, where no preset says it; None: it depends on the data.
DEFAULTS: dict[str, Any] = {
    "leaf": None,
    "branching": 16,
    "min_codes": 128,
    "refined_leaf": 400,
    "refined_branching": 32,
    "refined_min_codes": None,
    "steps": None,
    "learning_rate": 2e-4,
    "output_learning_rate": 1e-3,
    "warmup_steps": 0.1,
    "batch_size": 256,
    "most_active": 1000,
    "max_length": None,
    "man_beam": 20,
    "positive_cost": 4.0,
    "negative_cost": 1.0,
    "upper_cost": 1.0,
    "beam": 10,
    "threshold": 1e-3,
    "cost_weights": "normalized",
    "bootstrap_counts": True,
    "bootstrap_cost": None,
    "rule": "softmax",
    "candidates": 50,
}
FRUGAL_DEFAULTS: dict[str, Any] = {"learning_rate": 3e-3, "output_learning_rate": 3e-3}


def setting(model: XRTransformer, name: str) -> Any:
    """Return a parameter of an ``XRTransformer``, or what None stands for."""
    value = getattr(model, name, None)
    if not (value is None or (isinstance(value, str) and value == "auto")):
        return value
    if name == "cost_weights" and value is None:
        return None
    frugal = FRUGAL_DEFAULTS if model.encoder in FRUGAL else {}
    return {**DEFAULTS, **frugal, **PRESETS.get(model.preset or "", {})}.get(name, value)


def automatic_leaf(n_labels: int) -> int:
    """Return how many labels a last cluster has: 16, or as many as it takes for the encoder to be
    trained on a level of at most ``LARGEST_LEVEL`` clusters.

    >>> [automatic_leaf(n) for n in (4_000, 501_070, 670_091, 2_812_281)]
    [16, 16, 32, 128]
    """
    leaf = 16
    while n_labels > LARGEST_LEVEL and -(-n_labels // leaf) > LARGEST_LEVEL:
        leaf *= 2
    return leaf


def automatic_length(lengths: np.ndarray) -> int:
    """Return how many tokens of a text are read: as many as all but a twentieth of the texts have,
    in multiples of 32, at most 256.

    >>> automatic_length(np.array([3, 70, 40, 50]))
    96
    """
    usual = float(np.quantile(lengths, 0.95, method="higher")) if len(lengths) else 0.0
    return int(min(LONGEST, max(_SHORTEST, math.ceil(usual / 32) * 32)))


def automatic_steps(n_rows: int, batch_size: int) -> int:
    """Return the steps of all levels together: ten times through the rows, more often where these
    are few and 1,000 steps are not reached, at most forty times.

    >>> automatic_steps(41_333, 256), automatic_steps(15_000, 256), automatic_steps(1000, 256)
    (1615, 1000, 157)
    """
    low, high = (-(-times * n_rows // batch_size) for times in _EPOCHS)
    return min(max(_STEPS, low), high)


def steps_of(model: XRTransformer, n_levels: int, n_rows: int) -> list[int]:
    """Return the training steps of every level: half of them on the last, where only their sum is
    known.
    """
    if not n_levels:
        return []
    steps = setting(model, "steps")
    if model.frozen_layers == -1 and model.encoder not in FRUGAL:
        steps = 0
    if steps is None:
        steps = automatic_steps(n_rows, as_k(setting(model, "batch_size"), "batch_size"))
    if isinstance(steps, Integral) and not isinstance(steps, bool):
        share = [1] * (n_levels - 1) + [max(1, n_levels - 1)]
        each = [int(steps) * part // sum(share) for part in share]
        each[-1] += int(steps) - sum(each)
    else:
        each = _whole_numbers(steps)
        each += each[-1:] * (n_levels - len(each))
    if min(each) < 0:
        raise ValueError(f"steps must not be negative, got {steps}")
    each = each[:n_levels]
    return each if model.resolutions == "all" else [0] * (n_levels - 1) + [sum(each)]


def _whole_numbers(steps: Any) -> list[int]:
    try:
        out = [int(count) for count in steps]
        fine = (
            not isinstance(steps, (str, bytes))
            and out
            and all(a == b for a, b in zip(out, steps, strict=True))
        )
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise TypeError(f"steps must be a whole number, or one per level, got {steps!r}")
    return out


def check_settings(model: XRTransformer) -> None:
    """Raise ValueError or TypeError for settings that cannot be."""
    for name, choices in (
        ("preset", (None, *PRESETS)),
        ("features", FEATURES),
        ("resolutions", RESOLUTIONS),
    ):
        value = getattr(model, name)
        if value not in choices:
            told = ", ".join(map(str, choices))
            raise ValueError(f"{name} must be one of {told}, got {value!r}")
    if not (model.vectorizer is None or isinstance(model.vectorizer, Tfidf)):
        raise TypeError(f"vectorizer must be a Tfidf or None, got {model.vectorizer!r}")
    for name in ("most_active", "man_beam", "batch_size"):
        as_k(setting(model, name), name)
    if setting(model, "max_length") is not None:
        as_k(setting(model, "max_length"), "max_length")
    beam = setting(model, "beam")
    if not isinstance(beam, Integral):
        if isinstance(beam, str) or not len(beam):
            raise ValueError(f"beam must be a number, or one per level, got {beam!r}")
        beam = max(as_k(width, "beam") for width in beam)
    as_k(beam, "beam")
    for name in ("positive_cost", "negative_cost", "upper_cost", "bootstrap_cost"):
        value = setting(model, name)
        if value is None:
            continue
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(f"{name} must be a number, got {value!r}")
        if not 0 < float(value) < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value!r}")
    steps_of(model, 1, 1)
