"""Checkpoints of a training: after every epoch, and from there when it is started again."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail import persist
from longtail.deep.adam import Moments
from longtail.exceptions import ModelFormatError

__all__ = ["resume", "save"]


def fingerprint(training: Any) -> dict[str, Any]:
    """What a checkpoint must agree with: the plan, and the data."""
    fields = {k: v for k, v in vars(training.plan).items() if k not in ("checkpoint", "threads")}
    digest = hashlib.blake2b()
    for matrix in (training.raw_X, training.raw_targets):
        sparse = sp.issparse(matrix)
        arrays = [matrix.indptr, matrix.indices, matrix.data] if sparse else [matrix]
        for array in arrays:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return {**fields, "data": digest.hexdigest()}


def save(training: Any, spent: float) -> None:
    """Writes down the training as it is, if its plan names a folder."""
    if training.plan.checkpoint is None:
        return
    arrays = {}
    for name, weights in training.parameters.weights.items():
        moments = training.parameters.moments[name]
        arrays[f"{name}"] = weights.cpu().numpy()
        arrays[f"{name}_first"] = moments.first.cpu().numpy()
        arrays[f"{name}_second"] = moments.second.cpu().numpy()
    for name, mask in training.parameters.masks.items():
        arrays[f"{name}_mask"] = mask.cpu().numpy()
    for name, array in (training.best or {}).items():
        arrays[f"best_{name}"] = array
    meta = {
        "fingerprint": fingerprint(training),
        "step": training.step,
        "history": training.history,
        "best": [training.best_value, training.best_epoch],
        "spent": spent,
    }
    state = persist.State("network-checkpoint", {}, arrays, meta)
    persist.save(training.plan.checkpoint, state, overwrite=True)


def resume(training: Any) -> float:
    """Takes over a checkpoint if there is one; returns the seconds spent until then."""
    path = training.plan.checkpoint
    if path is None or not os.path.exists(path):
        return 0.0
    state = persist.load(path, mmap=False)
    if state.type != "network-checkpoint" or state.meta["fingerprint"] != fingerprint(training):
        raise ModelFormatError(
            f"{path} is no checkpoint of this training (other data or parameters): "
            "remove it, or name another"
        )
    arrays = {name: torch.tensor(a).to(training.device) for name, a in state.arrays.items()}
    for name in training.parameters.weights:
        training.parameters.weights[name] = arrays[name]
        moments = Moments(arrays[f"{name}_first"], arrays[f"{name}_second"])
        training.parameters.moments[name] = moments
        if f"{name}_mask" in arrays:
            training.parameters.masks[name] = arrays[f"{name}_mask"]
    best = {k.removeprefix("best_"): v for k, v in state.arrays.items() if k[:5] == "best_"}
    training.best = best or None
    training.best_value, training.best_epoch = state.meta["best"]
    training.step, training.history = state.meta["step"], list(state.meta["history"])
    return float(state.meta["spent"])
