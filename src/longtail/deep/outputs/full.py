"""``Full``: every label in every step, in chunks.

Of each chunk: its scores, their gradient, its share of the gradient of h, its update. Neither the
scores nor the gradient of the weights ever exist in full, so memory grows with the weights alone.
"""

from __future__ import annotations

from typing import Any

import torch

from longtail.deep.adam import Adam
from longtail.deep.objectives.objective import Objective
from longtail.deep.outputs.chunks import chunk_edges
from longtail.deep.outputs.layer import AdamLayer
from longtail.deep.workers import in_order

__all__ = ["Full"]


class Full(AdamLayer):
    """All labels, with a bias.

    ``low_precision`` multiplies in bfloat16; sums, weights and moments stay float32.
    """

    def __init__(
        self,
        weights: torch.Tensor,
        bias: torch.Tensor,
        *,
        low_precision: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(weights, bias, **options)
        self.low_precision = low_precision

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
        assert self.bias is not None
        all_weights, all_bias, steps = self.weights, self.bias, self.steps
        adam = Adam(rate, self.weight_decay)
        low = h.to(torch.bfloat16) if self.low_precision else h
        bounds = chunk_edges(len(h), self.n_labels, h.device)
        goal = objective.bind(targets, bounds)
        if goal.looks:
            goal.settle(in_order(self.pool, lambda p: goal.look(self.scores(low, p), p), bounds))

        def learn(part: slice) -> tuple[torch.Tensor, torch.Tensor | None]:
            weights, bias = all_weights.values[part].to(low.dtype), all_bias.values[part]
            products = low @ weights.T
            value = goal.value(products.float() + bias, part) if want_loss else None
            g = goal.gradient(products, bias, part)
            g_product = g.to(low.dtype)
            through = g_product @ weights
            all_weights.part(part).update(g_product.T @ low, adam, steps)
            all_bias.part(part).update(g.sum(0, dtype=torch.float32), adam, steps)
            return through, value

        loss = torch.zeros((), device=h.device) if want_loss else None
        gradient = torch.zeros_like(h)
        for through, value in in_order(self.pool, learn, bounds):
            gradient += through
            if loss is not None and value is not None:
                loss += value
        return loss, gradient
