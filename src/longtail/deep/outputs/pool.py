"""``Pool``: a batch names the labels it looks at.

Either one list for all of its rows (labels of the batch, mined negatives) or one list per row (a
shortlist from a tree). Only the rows of weights that it names are read, get a gradient and are
updated; weights and moments of the others stay as they are (sparse Adam). A dense Adam, whose
momentum moves every row in every step, would behave differently.
"""

from __future__ import annotations

import torch

from longtail.deep.adam import Adam
from longtail.deep.batches.pairs import PoolTargets
from longtail.deep.objectives.objective import Objective
from longtail.deep.outputs.layer import AdamLayer

__all__ = ["Pool"]


class Pool(AdamLayer):
    """Some labels, with or without a bias."""

    def pool_scores(self, h: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the scores of ``labels``, (s,) or (b, s), shape (b, s)."""
        at = labels.clamp(min=0)
        rows = self.weights.values[at]
        z = h @ rows.T if labels.ndim == 1 else torch.bmm(rows, h[:, :, None])[:, :, 0]
        return z if self.bias is None else z + self.bias.values[at]

    @torch.no_grad()
    def step(
        self,
        h: torch.Tensor,
        targets: PoolTargets,
        objective: Objective,
        rate: float,
        *,
        want_loss: bool = False,
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        z = self.pool_scores(h, targets.labels)
        loss, g = objective.on_pool(z, targets.targets, targets.weights, targets.present)
        return loss if want_loss else None, self.learn(h, targets.labels, g, rate)

    @torch.no_grad()
    def learn(
        self, h: torch.Tensor, labels: torch.Tensor, g: torch.Tensor, rate: float
    ) -> torch.Tensor:
        """Update the weights of ``labels`` by the gradient ``g`` (b, s) of their scores; return
        that of ``h``.
        """
        self.steps += 1
        adam = Adam(rate, self.weight_decay)
        at = labels.clamp(min=0)
        rows = self.weights.values[at]
        if labels.ndim == 1:
            gradient_h, each, sums = g @ rows, g.T @ h, g.sum(0)
        else:
            gradient_h = torch.bmm(g[:, None], rows)[:, 0]
            each, sums = (g[:, :, None] * h[:, None]).flatten(0, 1), g.flatten()
        real = labels.flatten() >= 0
        touched, place = torch.unique(at.flatten()[real], return_inverse=True)
        gradient = torch.zeros(len(touched), h.shape[1], device=h.device)
        gradient.index_add_(0, place, each[real].float())
        self.weights.update(gradient, adam, self.steps, rows=touched)
        if self.bias is not None:
            of_bias = torch.zeros(len(touched), device=h.device)
            of_bias.index_add_(0, place, sums[real].float())
            self.bias.update(of_bias, adam, self.steps, rows=touched)
        return gradient_h
