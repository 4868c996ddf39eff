"""``Lean``: every label in every step, with weights of 32, 16 or 8 bits and no copy of them.

Renee (Jain et al. 2023) with plain SGD, and ELMO (Zhang et al. 2025): of each chunk of labels the
scores, their gradient, its share of the gradient of h (from the weights as they were), and at once
its update, rounded stochastically. Of bfloat16 weights the vectors and the gradients by scores are
rounded to bfloat16 before they are multiplied; of E4M3 weights the vectors to E4M3. Products are
summed in float32.

On a GPU the chunk is three kernels (``chunk_step``); elsewhere the same arithmetic in tensor
operations. The bias stays where it starts, at the log odds of the labels.
"""

from __future__ import annotations

from concurrent.futures import Executor
from itertools import pairwise
from typing import Any

import torch

from longtail.deep.objectives.objective import Objective
from longtail.deep.outputs.chunk_step import chunk_step
from longtail.deep.outputs.chunks import chunk_edges
from longtail.deep.outputs.layer import Layer
from longtail.deep.outputs.rounding import decoded, nearest
from longtail.deep.outputs.stored import Sgd, Stored, seed_of
from longtail.deep.workers import edges, in_order

__all__ = ["Lean"]

_SCORES = 1 << 23  # of a chunk in float32 on a GPU, where there is no kernel for it
_NARROWEST = 2048


class Lean(Layer):
    """``weights`` (L, e), float32 or already raw, are kept in ``precision``; ``bias`` (L,).

    ``compensated``: labels whose rounding is compensated (Kahan); ``seed``: of the rounding.
    """

    def __init__(
        self,
        weights: torch.Tensor,
        bias: torch.Tensor,
        *,
        precision: str = "float32",
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        compensated: torch.Tensor | None = None,
        seed: int = 0,
        pool: Executor | None = None,
    ) -> None:
        self.weights = Stored(weights, precision, momentum=momentum > 0, compensated=compensated)
        self.width = int(weights.shape[1])
        self.bias, self.momentum, self.weight_decay = bias, momentum, weight_decay
        self.seed, self.pool = seed, pool

    @property
    def n_labels(self) -> int:
        return len(self.weights.raw)

    @property
    def device(self) -> torch.device:
        return self.weights.raw.device

    @property
    def precision(self) -> str:
        return self.weights.precision

    def scores(self, h: torch.Tensor, part: slice) -> torch.Tensor:
        return self._products(h.float(), part) + self.bias[part]

    def _products(self, x: torch.Tensor, part: slice) -> torch.Tensor:
        """Return ``X W^T`` of a chunk, summed in float32."""
        weights = self.weights.part(part)
        if x.is_cuda and self.precision != "float32":  # what has few bits is multiplied as such
            low = torch.bfloat16
            return torch.mm(x.to(low), weights.to(low).T, out_dtype=torch.float32)
        return x @ weights.T

    def _edges(self, rows: int) -> list[int]:
        if self.device.type == "cpu":
            return chunk_edges(rows, self.n_labels, self.device)
        return edges(self.n_labels, max(_NARROWEST, _SCORES // max(1, rows)))

    @torch.no_grad()
    def step(
        self,
        h: torch.Tensor,
        targets: Any,
        objective: Objective,
        rate: float,
        *,
        want_loss: bool = False,
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        self.steps += 1
        sgd = Sgd(rate, self.momentum, self.weight_decay)
        raw = nearest(h.float(), self.precision)
        x = decoded(raw)
        bounds = self._edges(len(h))
        goal = objective.bind(targets, bounds)

        def scored(part: slice) -> torch.Tensor:
            return self._products(x, part) + self.bias[part]

        if goal.looks:
            goal.settle(in_order(self.pool, lambda p: goal.look(scored(p), p), bounds))
        pointwise, kernels = goal.pointwise(), chunk_step(self.weights, h.shape[1])
        if kernels is not None and pointwise is not None:
            loss = None
            if want_loss:
                parts = (slice(*edge) for edge in pairwise(bounds))
                loss = torch.stack([goal.value(scored(p), p) for p in parts]).sum()
            run = kernels(self.weights, self.bias, raw, pointwise, sgd)
            return loss, run([seed_of(self.seed, self.steps, p) for p in run.edges[:-1]])

        def learn(part: slice) -> tuple[torch.Tensor, torch.Tensor | None]:
            weights, bias = self.weights.part(part), self.bias[part]
            products = self._products(x, part)
            value = goal.value(products + bias, part) if want_loss else None
            g = goal.gradient(products, bias, part)
            if self.precision != "float32":
                g = decoded(nearest(g.float(), "bfloat16"))
            through = g @ weights
            seed = seed_of(self.seed, self.steps, part.start)
            self.weights.update(part, g.T @ x, sgd, seed)
            return through, value

        loss = torch.zeros((), device=h.device) if want_loss else None
        gradient = torch.zeros_like(x)
        for through, value in in_order(self.pool, learn, bounds):
            gradient += through
            if loss is not None and value is not None:
                loss += value
        return loss, gradient

    def trained(self) -> dict[str, torch.Tensor]:
        return {"weights": self.weights.raw, "bias": self.bias}

    def finite(self) -> bool:
        bounds = edges(self.n_labels, max(1, _SCORES // self.weights.raw.shape[1]))
        parts = (self.weights.raw[begin:end] for begin, end in pairwise(bounds))
        if self.precision == "float8":  # has no infinities, and NaN is all ones
            return not any(bool(((part & 0x7F) == 0x7F).any()) for part in parts)
        return all(bool(torch.isfinite(decoded(part)).all()) for part in parts)

    def arrays(self) -> dict[str, torch.Tensor]:
        return {"bias": self.bias, **self.weights.arrays()}

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        self.bias.copy_(arrays["bias"])
        self.weights.load({name: a for name, a in arrays.items() if name != "bias"})
        self.steps = steps
