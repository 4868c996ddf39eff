"""The training loop: epochs, early stopping, checkpoints, progress."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from longtail._progress import Progress
from longtail.deep.batches.feed import Feed
from longtail.deep.group import Group
from longtail.deep.objectives.objective import Objective
from longtail.deep.optimisers import EncoderOptimiser, optimiser_of
from longtail.deep.outputs.layer import Layer
from longtail.deep.training.checkpoint import Checkpoint
from longtail.deep.training.plan import Plan
from longtail.deep.training.pruning import Pruning
from longtail.deep.training.schedule import Schedule
from longtail.deep.training.step import Step

__all__ = ["Outcome", "Trainer", "require_device"]

log = logging.getLogger(__name__)

_LOOK_AT_LOSS = 50  # steps from one look at the loss to the next
_WATCHED = 0.9  # how much of the loss that is shown is of earlier steps


@dataclass
class Outcome:
    """``history``: one record per epoch (``epoch``, ``seconds`` since the start, ``loss``,
    ``validation``: what early stopping watches, higher is better; None without a split).
    """

    history: list[dict[str, Any]]
    best_epoch: int


def require_device(name: str) -> None:
    """Raise ValueError if a GPU is named that is not there."""
    if name == "mps" and not torch.backends.mps.is_available():
        raise ValueError("there is no device 'mps': torch sees none")
    count = torch.cuda.device_count()
    if name.startswith("cuda") and int(name.partition(":")[2] or 0) >= count:
        raise ValueError(f"there is no device {name!r}: torch sees {count} GPUs")


@contextmanager
def own_randomness(device: torch.device) -> Iterator[None]:
    """Leave the random numbers of the program as they were."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


@dataclass
class Trainer:
    """Trains an encoder and an output layer; both are changed in place and end as they were in the
    best epoch.

    ``validate(encode, output)`` returns what early stopping watches; ``checkpoint`` is a folder
    that was opened for this training; ``group``: the processes that train together;
    ``after_epoch(epoch, seconds)`` may look at the model, and
    the time it takes is not counted. ``first_loss``: that of the first step.
    """

    encoder: nn.Module
    output: Layer
    objective: Objective
    feed: Feed
    plan: Plan
    validate: Callable[..., float] | None = None
    checkpoint: Checkpoint | None = None
    pruning: Pruning | None = None
    optimiser: EncoderOptimiser | None = None
    after_epoch: Callable[[int, float], None] | None = None
    group: Group | None = None
    title: str = "Network"

    step: Step = field(init=False)
    schedule: Schedule = field(init=False)
    history: list[dict[str, Any]] = field(init=False, default_factory=list)
    best: dict[str, torch.Tensor] | None = field(init=False, default=None)
    best_value: float = field(init=False, default=-np.inf)
    best_epoch: int = field(init=False, default=0)
    first_loss: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        plan = self.plan
        total = len(self.feed) * plan.epochs
        self.schedule = Schedule(plan.decay, total, plan.warmup_of(total))
        if self.optimiser is None:
            self.optimiser = optimiser_of(
                self.encoder, plan.weight_decay, compensated=plan.precision == "bfloat16-weights"
            )
        self.step = Step(self.encoder, self.output, self.objective, plan, self.group)

    def run(self) -> Outcome:
        """Train all epochs, or until early stopping, from the last checkpoint on."""
        spent = 0.0 if self.checkpoint is None else self.checkpoint.resume(self)
        device = torch.device(self.plan.device)
        with own_randomness(device), Progress(self.title) as progress:
            for epoch in range(len(self.history) + 1, self.plan.epochs + 1):
                if self._stopped():
                    break
                began = time.perf_counter()
                loss = self._epoch(epoch, progress)
                if self.group is not None:
                    self.group.same_buffers(self.encoder)
                if self.pruning is not None:
                    self.pruning.after_epoch(epoch)
                if device.type == "cuda":
                    torch.cuda.synchronize()
                spent += time.perf_counter() - began
                self._check_finite()
                value = self._validate()
                self.history.append(
                    {"epoch": epoch, "seconds": spent, "loss": loss, "validation": value}
                )
                log.info("%s", _told(self.title, self.history[-1], self.plan))
                if self.after_epoch is not None:
                    self.after_epoch(epoch, spent)
                self._keep_best(epoch, value)
                self.schedule.watch(value)
                if self.checkpoint is not None:
                    self.checkpoint.save(self, spent)
        if self.best is not None:
            self._restore(self.best)
        return Outcome(self.history, self.best_epoch)

    def _epoch(self, epoch: int, progress: Progress) -> float | None:
        plan, total = self.plan, len(self.feed)
        self.encoder.train()
        self.step.begin(epoch)
        shown: float | None = None
        assert self.optimiser is not None
        output_rate = plan.output_learning_rate
        for i, (inputs, targets) in enumerate(self.feed.epoch(epoch)):
            number = (epoch - 1) * total + i
            told = "" if shown is None else f"epoch {epoch}, loss {shown:.4g}"
            progress(number, plan.epochs * total, told)
            factor = self.schedule.factor(number)
            rate = plan.learning_rate * factor
            loss = self.step(
                inputs,
                targets,
                rate if output_rate is None else output_rate * factor,
                number,
                want_loss=i % _LOOK_AT_LOSS == 0,
            )
            self.optimiser.step(rate)
            if loss is not None:
                value = float(loss)
                if self.first_loss is None:
                    self.first_loss = value
                shown = value if shown is None else _WATCHED * shown + (1 - _WATCHED) * value
        return shown

    def _validate(self) -> float | None:
        if self.validate is None:
            return None
        self.encoder.eval()
        return self.validate(self.step.encode, self.output)

    def _check_finite(self) -> None:
        encoder = all(bool(torch.isfinite(p.data).all()) for p in self.encoder.parameters())
        if not encoder or not self.output.finite():
            raise ValueError("training diverged: lower learning_rate")

    def _keep_best(self, epoch: int, value: float | None) -> None:
        sparse_enough = self.pruning is None or self.pruning.done
        if value is None or not sparse_enough:
            self.best_epoch = epoch
        elif value > self.best_value:
            self.best_value, self.best_epoch = value, epoch
            self.best = {name: _kept(t) for name, t in self._learned().items()}

    def _stopped(self) -> bool:
        pruned = self.pruning is None or self.pruning.done
        waited = len(self.history) - self.best_epoch
        return pruned and self.best is not None and waited >= self.plan.patience

    def _learned(self) -> dict[str, torch.Tensor]:
        encoder = {f"encoder.{name}": t for name, t in self.encoder.state_dict().items()}
        return {**encoder, **{f"output.{n}": t for n, t in self.output.trained().items()}}

    def _restore(self, learned: dict[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, tensor in self._learned().items():
                tensor.copy_(learned[name])


def _kept(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the CPU; of bfloat16 as float32, which a checkpoint can hold."""
    wide = torch.float32 if tensor.dtype == torch.bfloat16 else tensor.dtype
    return tensor.detach().to("cpu", wide, copy=True)


def _told(title: str, record: dict[str, Any], plan: Plan) -> str:
    parts = [f"{title}: epoch {record['epoch']} of {plan.epochs}, {record['seconds']:.0f} s"]
    if record["loss"] is not None:
        parts.append(f"loss {record['loss']:.4g}")
    if record["validation"] is not None:
        parts.append(f"{plan.metric} on held-out rows {record['validation']:.4f}")
    return ", ".join(parts)
