"""``Plan``: how a network is trained, with everything checked."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from longtail._native import n_threads
from longtail._protocols import HasParameters
from longtail._validation import as_k, n_instances
from longtail.deep.training.pruning_schedule import SCHEDULES
from longtail.deep.training.schedule import DECAYS

__all__ = ["METRICS", "Plan", "resolved_device"]

METRICS = ("precision", "recall", "ndcg", "psp")


@dataclass(frozen=True)
class Plan:
    """What a training needs to know besides the data. A model passes its parameters of the same
    names and explains them to its users.
    """

    epochs: int
    batch_size: int
    learning_rate: float  # of the encoder
    seed: int
    threads: int
    device: str  # "cpu", "cuda", "cuda:1", "mps"
    precision: str  # "float32" or, on a GPU, "bfloat16" (products) or "bfloat16-weights"
    output_learning_rate: float | None = None  # None: as the encoder's
    weight_decay: float = 0.0
    decay: str = "linear"
    warmup_steps: float = 0  # a share of all steps, or their number
    clip: float | None = None  # the most that the norm of the encoder's gradient may be
    dropout: float = 0.0  # of the vectors between encoder and output layer
    micro_batch: int | None = None  # rows that pass through the encoder at a time
    validation: float = 0.0
    n_label_rows: int = 0  # of the last rows, which are no instances: never validated on
    patience: int = 3
    metric: str = "precision"
    keep: int | None = None
    schedule: str = "gradual"
    warmup: int = 1
    checkpoint: str | None = None

    @classmethod
    def of(cls, model: HasParameters, **settings: Any) -> Plan:
        """Return the plan of a model's parameters, with ``settings`` in place of some."""
        params = {**model.get_params(deep=False), **settings}
        params["threads"] = n_threads(params.get("n_jobs"))
        params["device"] = resolved_device(params["device"])
        params["precision"] = _precision(params["precision"], params["device"])
        path = params.get("checkpoint")
        params["checkpoint"] = None if path is None else os.fspath(path)
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in params.items() if name in names})

    @property
    def low(self) -> bool:
        """Whether products are those of bfloat16 numbers."""
        return self.precision != "float32"

    def split(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows to validate on, in random order, and those to learn from, ascending."""
        n = n_instances(n_rows, self.n_label_rows)
        order = np.random.default_rng([self.seed, 0]).permutation(n)
        n_valid = int(n * self.validation)
        return order[:n_valid], np.concatenate([np.sort(order[n_valid:]), np.arange(n, n_rows)])

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "batch_size"):
            as_k(getattr(self, name), name)
        for name in ("keep", "micro_batch"):
            if getattr(self, name) is not None:
                as_k(getattr(self, name), name)
        for name, choices in (("schedule", SCHEDULES), ("decay", DECAYS), ("metric", METRICS)):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}"
                )
        for name in ("learning_rate", "weight_decay", "dropout", "validation", "warmup_steps"):
            _number(getattr(self, name), name)
        if not isinstance(self.warmup, Integral) or self.warmup < 0:
            raise ValueError(f"warmup must be a number of epochs, got {self.warmup!r}")
        if not 0 < self.learning_rate < math.inf or not 0 <= self.weight_decay < math.inf:
            raise ValueError("learning_rate must be positive and weight_decay not negative")
        if not 0 <= self.dropout < 1 or not 0 <= self.validation < 1:
            raise ValueError("dropout and validation are shares: they lie in [0, 1)")
        if not 0 <= self.warmup_steps < math.inf:
            raise ValueError(f"warmup_steps must not be negative, got {self.warmup_steps}")
        for name in ("output_learning_rate", "clip"):
            value = getattr(self, name)
            if value is not None and not 0 < _number(value, name) < math.inf:
                raise ValueError(f"{name} must be positive, got {value}")

    def gentler(self, epochs: int) -> Plan:
        """Return the plan of a training that goes on for some epochs: at a tenth of the rates, and
        on all rows.
        """
        output = (
            self.learning_rate if self.output_learning_rate is None else self.output_learning_rate
        )
        return replace(
            self,
            epochs=epochs,
            validation=0.0,
            learning_rate=self.learning_rate / 10,
            output_learning_rate=output / 10,
        )

    def warmup_of(self, total: int) -> int:
        """Return the steps over which the rate rises, out of ``total``."""
        share = self.warmup_steps < 1
        return min(total, int(self.warmup_steps * total if share else self.warmup_steps))


def _number(value: Any, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return float(value)


def resolved_device(name: Any) -> str:
    """Return the device of a parameter; "auto" takes cuda, then mps, then cpu."""
    if name == "auto":
        import torch

        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    if name not in ("cpu", "mps") and not re.fullmatch(r"cuda(:\d+)?", str(name)):
        raise ValueError(
            f"device must be 'auto', 'cpu', 'cuda', 'cuda:1', … or 'mps', got {name!r}"
        )
    return str(name)


def _precision(name: Any, device: str) -> str:
    on_gpu = device.startswith("cuda")
    if name == "auto":
        return "bfloat16" if on_gpu else "float32"
    if name not in ("float32", "bfloat16", "bfloat16-weights") or (
        name != "float32" and not on_gpu
    ):
        raise ValueError(
            "precision must be 'auto', 'float32' or, on a GPU, 'bfloat16' or 'bfloat16-weights', "
            f"got {name!r} on {device}"
        )
    return str(name)
