"""Checkpoints of a training: after every epoch, and from there when it is started again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail import persist
from longtail.deep.training.plan import Plan
from longtail.exceptions import ModelFormatError

__all__ = ["Checkpoint", "digest_of", "open_checkpoint"]


def open_checkpoint(plan: Plan, data: list[Any], **about: Any) -> Checkpoint | None:
    """Return the checkpoint of a plan, or None if it names no folder. The data (matrices, arrays,
    ``Tokens``) are hashed here, once.
    """
    if plan.checkpoint is None:
        return None
    fields = {k: v for k, v in asdict(plan).items() if k not in ("checkpoint", "threads")}
    return Checkpoint(plan.checkpoint, {**fields, **about, "data": digest_of(data)})


def digest_of(data: list[Any]) -> str:
    """Return matrices, arrays and ``Tokens`` in few bytes."""
    digest = hashlib.blake2b()
    for item in data:
        for array in _arrays(item):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _arrays(item: Any) -> list[np.ndarray]:
    if item is None:
        return []
    if sp.issparse(item):
        return [item.indptr, item.indices, item.data]
    return [item.offsets, item.ids] if hasattr(item, "offsets") else [np.asarray(item)]


def _best(
    learned: dict[str, torch.Tensor],
    change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]],
) -> dict[str, torch.Tensor]:
    """Return what was best, with the arrays of the output layer changed."""
    own = {name: array for name, array in learned.items() if name.startswith("output.")}
    return {**learned, **change(own)}


class Checkpoint:
    """A folder with the state of a training, and what it must agree with."""

    def __init__(self, path: str, fingerprint: dict[str, Any]) -> None:
        self.path, self.fingerprint = path, fingerprint

    def save(self, trainer: Any, spent: float) -> None:
        """Write down the training as it is; of several processes, the first one writes."""
        output, processes = trainer.output, trainer.group
        groups = {
            "encoder": trainer.optimiser.arrays(),
            "buffer": dict(trainer.encoder.named_buffers()),
            "output": output.whole(output.arrays()),
            "best": _best(trainer.best or {}, output.whole),
            "feed": trainer.feed.arrays(),
        }
        if processes is not None and processes.rank:
            processes.wait()
            return
        arrays: dict[str, np.ndarray] = {}
        names: dict[str, list[str]] = {}
        for group, tensors in groups.items():
            names[group] = list(tensors)
            for i, tensor in enumerate(tensors.values()):
                arrays[f"{group}{i}"] = tensor.detach().cpu().numpy()
        schedule = trainer.schedule
        meta = {
            "fingerprint": self.fingerprint,
            "names": names,
            "steps": trainer.output.steps,
            "history": trainer.history,
            "best": [trainer.best_value, trainer.best_epoch],
            "schedule": [schedule.scale, schedule.best, schedule.waited],
            "spent": spent,
        }
        state = persist.State("network-checkpoint", {}, arrays, meta)
        persist.save(self.path, state, overwrite=True)
        if processes is not None:
            processes.wait()

    def resume(self, trainer: Any) -> float:
        """Take over a checkpoint if there is one; return the seconds spent until then."""
        if not os.path.exists(self.path):
            return 0.0
        state = persist.load(self.path, mmap=False)
        meta = state.meta
        if state.type != "network-checkpoint" or meta.get("fingerprint") != self.fingerprint:
            raise ModelFormatError(
                f"{self.path} is no checkpoint of this training (other data or parameters): "
                "remove it, or name another"
            )
        groups = {
            group: {name: torch.tensor(state.arrays[f"{group}{i}"]) for i, name in enumerate(names)}
            for group, names in meta["names"].items()
        }
        trainer.optimiser.load(groups["encoder"], meta["steps"])
        buffers = dict(trainer.encoder.named_buffers())
        for name, tensor in groups["buffer"].items():
            buffers[name].copy_(tensor)
        output = trainer.output
        output.load(output.part(groups["output"]), meta["steps"])
        trainer.feed.load(groups.get("feed", {}))
        trainer.best = _best(groups["best"], output.part) or None
        trainer.best_value, trainer.best_epoch = meta["best"]
        trainer.history = list(meta["history"])
        schedule = trainer.schedule
        schedule.scale, schedule.best, schedule.waited = meta["schedule"]
        return float(meta["spent"])
