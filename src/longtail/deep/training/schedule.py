"""``Schedule``: how learning rates rise and fall over the steps of a training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["DECAYS", "Schedule"]

DECAYS = ("linear", "cosine", "constant", "plateau")


@dataclass
class Schedule:
    """The factor of every learning rate at a step.

    It rises from 0 over ``warmup`` steps, then falls to 0 at ``total`` along a line or half a
    cosine, or stays. With "plateau" it is halved when ``watch`` has seen ``patience`` values in a
    row that are no better than the best, down to ``least``.

    >>> schedule = Schedule("linear", total=10, warmup=2)
    >>> [schedule.factor(step) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.125]
    """

    decay: str
    total: int
    warmup: int = 0
    patience: int = 2
    least: float = 0.01
    scale: float = 1.0
    best: float = -math.inf
    waited: int = field(default=0)

    def factor(self, step: int) -> float:
        """Return the factor of step ``step``, counted from 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.total - self.warmup)
        if self.decay == "linear":
            return 1 - done
        if self.decay == "cosine":
            return 0.5 * (1 + math.cos(math.pi * done))
        return self.scale

    def watch(self, value: float | None) -> None:
        """Take note of the value of an epoch (higher is better)."""
        if self.decay != "plateau" or value is None:
            return
        if value > self.best:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            self.scale, self.waited = max(self.least, self.scale / 2), 0
