"""``Stored``: output weights in 32, 16 or 8 bits, updated by SGD where they lie.

::

    raw           (L, e)  float32, int16 (bfloat16) or uint8 (E4M3); there is no other copy
    momentum      (L, e)  float32, or None
    slots         (L,)    int32: the row of a label in ``compensation``, or -1; or None
    compensation  (c, e)  int16 (bfloat16) or uint8 (E5M2): what rounding has lost

``w <- w - rate (g + decay w)``, rounded stochastically. A compensated label is rounded to nearest
instead, and what that loses is added to its next update (Kahan).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from longtail.deep.outputs.rounding import decoded, nearest, random_bits, raw_dtype, stochastic

__all__ = ["Sgd", "Stored", "seed_of"]


@dataclass(frozen=True)
class Sgd:
    """Stochastic gradient descent, with the decay as a part of the gradient."""

    rate: float
    momentum: float = 0.0
    weight_decay: float = 0.0


def seed_of(seed: int, step: int, begin: int) -> int:
    """Return the seed of the random bits of a chunk in a step: 32 bits."""
    return int(np.random.SeedSequence([seed, 7, step, begin]).generate_state(1)[0])


class Stored:
    """Weights of all labels. ``compensated``: numbers of labels whose rounding is compensated."""

    def __init__(
        self,
        weights: torch.Tensor,
        precision: str,
        *,
        momentum: bool = False,
        compensated: torch.Tensor | None = None,
    ) -> None:
        self.precision = precision
        if weights.dtype == raw_dtype(precision):
            self.raw = weights
        else:
            self.raw = nearest(weights, precision)
        zero = torch.zeros
        self.momentum = zero(self.raw.shape, device=weights.device) if momentum else None
        self.slots: torch.Tensor | None = None
        self.compensation: torch.Tensor | None = None
        if compensated is not None and len(compensated) and precision != "float32":
            labels = compensated.to(weights.device)
            self.slots = torch.full((len(weights),), -1, dtype=torch.int32, device=weights.device)
            self.slots[labels] = torch.arange(len(labels), dtype=torch.int32, device=weights.device)
            self.compensation = zero(
                (len(labels), weights.shape[1]), dtype=self.raw.dtype, device=weights.device
            )

    def part(self, some: slice) -> torch.Tensor:
        """Return the weights of some labels as float32 numbers; float32 ones are a view."""
        return decoded(self.raw[some])

    def update(self, some: slice, gradient: torch.Tensor, sgd: Sgd, seed: int) -> None:
        """Change the weights of some labels by their gradient, (w, e) float32."""
        weights = self.part(some)
        change = gradient + sgd.weight_decay * weights if sgd.weight_decay else gradient
        if self.momentum is not None:
            change = self.momentum[some].mul_(sgd.momentum).add_(change)
        if self.precision == "float32":
            weights.sub_(change, alpha=sgd.rate)
            return
        moved = weights - sgd.rate * change
        bits = random_bits(seed, moved.shape, moved.device)
        raw = stochastic(moved, self.precision, bits)
        if self.slots is not None:
            self._compensate(raw, weights, -sgd.rate * change, self.slots[some])
        self.raw[some] = raw

    def _compensate(
        self, raw: torch.Tensor, weights: torch.Tensor, change: torch.Tensor, slots: torch.Tensor
    ) -> None:
        """Round the compensated rows again, to nearest, and keep what is lost."""
        rows = torch.nonzero(slots >= 0)[:, 0]
        if not len(rows) or self.compensation is None:
            return
        at = slots[rows].long()
        owed = change[rows] + _lost(self.compensation[at])
        raw[rows] = nearest(weights[rows] + owed, self.precision)
        self.compensation[at] = _kept(owed - (decoded(raw[rows]) - weights[rows]), self.precision)

    def arrays(self) -> dict[str, torch.Tensor]:
        """Return the state by name, for a checkpoint."""
        out = {"raw": self.raw}
        for name in ("momentum", "compensation"):
            array = getattr(self, name)
            if array is not None:
                out[name] = array
        return out

    def load(self, arrays: dict[str, torch.Tensor]) -> None:
        """Take over what ``arrays`` returned, in place."""
        for name, array in arrays.items():
            getattr(self, name).copy_(array)


def _lost(kept: torch.Tensor) -> torch.Tensor:
    """Return compensations as float32 numbers: bfloat16, or E5M2 where weights have 8 bits."""
    if kept.dtype == torch.uint8:  # E5M2 is float16 less its last 8 bits
        return (kept.to(torch.int16) << 8).view(torch.float16).float()
    return decoded(kept)


def _kept(values: torch.Tensor, precision: str) -> torch.Tensor:
    if precision == "bfloat16":
        return nearest(values, precision)
    return values.clamp(-57344, 57344).to(torch.float8_e5m2).view(torch.uint8)
