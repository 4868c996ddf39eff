"""``Plan``: how a network is trained, with everything checked."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from longtail._native import n_threads
from longtail._validation import as_k
from longtail.deep.schedule import SCHEDULES

__all__ = ["Plan", "plan_of"]


@dataclass(frozen=True)
class Plan:
    """What to train, and how. ``Network`` explains the fields of the same names."""

    loss: str
    hidden: int
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    dropout: float
    validation: float
    patience: int
    keep: int | None
    schedule: str
    warmup: int
    device: str
    precision: str
    seed: int
    threads: int
    checkpoint: str | None = None


def plan_of(network: Any, loss: str, seed: int, epochs: int) -> Plan:
    """From the parameters of a ``Network``; refuses what makes no sense."""
    for name in ("hidden", "epochs", "patience", "batch_size"):
        as_k(getattr(network, name), name)
    if network.keep is not None:
        as_k(network.keep, "keep")
    if network.schedule not in SCHEDULES:
        raise ValueError(
            f"schedule must be one of {', '.join(SCHEDULES)}, got {network.schedule!r}"
        )
    for name in ("learning_rate", "weight_decay", "dropout", "validation"):
        if not isinstance(getattr(network, name), Real):
            raise TypeError(f"{name} must be a number, got {getattr(network, name)!r}")
    if not isinstance(network.warmup, Integral) or network.warmup < 0:
        raise ValueError(f"warmup must be a number of epochs, got {network.warmup!r}")
    if not 0 < network.learning_rate < np.inf or not 0 <= network.weight_decay < np.inf:
        raise ValueError("learning_rate must be positive and weight_decay not negative")
    if not 0 <= network.dropout < 1 or not 0 <= network.validation < 1:
        raise ValueError("dropout and validation are shares: they lie in [0, 1)")
    if network.device != "cpu" and not re.fullmatch(r"cuda(:\d+)?", str(network.device)):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:1', …, got {network.device!r}")
    on_cpu = network.device == "cpu"
    precision = network.precision
    if precision == "auto":
        precision = "float32" if on_cpu else "bfloat16"
    if precision not in ("float32", "bfloat16") or (on_cpu and precision == "bfloat16"):
        raise ValueError(
            "precision must be 'auto', 'float32' or, on a GPU, 'bfloat16', "
            f"got {network.precision!r} on {network.device}"
        )
    checkpoint = None if network.checkpoint is None else os.fspath(network.checkpoint)
    return Plan(
        loss=loss,
        hidden=int(network.hidden),
        epochs=epochs,
        batch_size=int(network.batch_size),
        learning_rate=float(network.learning_rate),
        weight_decay=float(network.weight_decay),
        dropout=float(network.dropout),
        validation=float(network.validation),
        patience=int(network.patience),
        keep=None if network.keep is None else int(network.keep),
        schedule=network.schedule,
        warmup=int(network.warmup),
        device=network.device,
        precision=precision,
        seed=seed,
        threads=n_threads(network.n_jobs),
        checkpoint=checkpoint,
    )
