"""``LabelShard``: an output layer of which this process has some labels, and others the rest;
``PoolShard``: of which each row looks at some.

The layer inside knows its own labels only, from 0 on. Objectives are bound to the labels of all, so
that what a row's labels sum up to stays true, and are asked about its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from longtail.deep.batches.pairs import PoolTargets
from longtail.deep.group import Group
from longtail.deep.objectives.objective import Bound, Objective, Pointwise
from longtail.deep.outputs.layer import Layer
from longtail.deep.outputs.pool import Pool

__all__ = ["LabelShard", "PoolShard"]


class LabelShard(Layer):
    """Labels ``own`` of ``total``, learned by the layer ``inner``; the others are elsewhere."""

    def __init__(self, inner: Layer, own: slice, total: int, group: Group) -> None:
        self.inner, self.own, self.total, self.group = inner, own, total, group

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.inner.steps

    @property
    def n_labels(self) -> int:
        return self.total

    @property
    def device(self) -> torch.device:
        return self.inner.device

    def scores(self, h: torch.Tensor, part: slice) -> torch.Tensor:
        raise RuntimeError("the scores of all labels are not in one process")

    def trained(self) -> dict[str, torch.Tensor]:
        return self.inner.trained()

    def finite(self) -> bool:
        return self.group.all(self.inner.finite(), self.device)

    def arrays(self) -> dict[str, torch.Tensor]:
        return self.inner.arrays()

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        self.inner.load(arrays, steps)

    def whole(self, arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: self.group.gather(array) for name, array in arrays.items()}

    def part(self, arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: array[self.own] for name, array in arrays.items()}

    def step(
        self,
        h: torch.Tensor,
        targets: Any,
        objective: Objective,
        rate: float,
        *,
        want_loss: bool = False,
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        seen: Any = _SeenFromHere(objective, self.own, self.total, self.group)
        loss, gradient = self.inner.step(h, targets, seen, rate, want_loss=want_loss)
        if loss is not None:
            self.group.sum(loss)
        return loss, self.group.sum(gradient)

    @torch.no_grad()
    def top(self, h: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        ids, scores = self.inner.top(h, min(k, self.inner.n_labels))
        return self.group.best(ids + self.own.start, scores, min(k, self.total))

    @torch.no_grad()
    def squared_errors(self, h: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.group.sum(self.inner.squared_errors(h, targets[:, self.own]))


class PoolShard(LabelShard):
    """Labels ``own`` of a ``Pool`` of which each row of a batch names some.

    A score is computed by the process that has the label, and known to all of them.
    """

    inner: Pool

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
        labels = targets.labels
        here = (labels >= self.own.start) & (labels < self.own.stop)
        counts = here.sum(1)
        inside = torch.arange(max(1, int(counts.max())), device=h.device) < counts[:, None]
        own = labels.new_full(inside.shape, -1)
        own[inside] = labels[here] - self.own.start
        z, gradient = torch.zeros_like(targets.targets), torch.zeros_like(h)
        if self.inner.n_labels:  # a level may have fewer nodes than there are processes
            z[here] = self.inner.pool_scores(h, own)[inside]
        self.group.sum(z)
        loss, g = objective.on_pool(z, targets.targets, targets.weights, targets.present)
        if self.inner.n_labels:
            own_g = g.new_zeros(inside.shape)
            own_g[inside] = g[here]
            gradient = self.inner.learn(h, own, own_g, rate)
        return loss if want_loss else None, self.group.sum(gradient)


class _SeenFromHere:
    """An objective whose first label is ``own.start``."""

    def __init__(self, objective: Objective, own: slice, total: int, group: Group) -> None:
        self.objective, self.own, self.total, self.group = objective, own, total, group

    def bind(self, targets: Any, bounds: list[int]) -> Bound:
        # From the first label of all to the last, so that counts and divisors are those of all.
        own = [bound + self.own.start for bound in bounds]
        everything = sorted({0, *own, self.total})
        return _BoundHere(self.objective.bind(targets, everything), self.own, self.group)


class _BoundHere(Bound):
    def __init__(self, inner: Bound, own: slice, group: Group) -> None:
        self.inner, self.own, self.group = inner, own, group
        self.looks = inner.looks

    def _there(self, part: slice) -> slice:
        return slice(part.start + self.own.start, part.stop + self.own.start)

    def look(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        return self.inner.look(z, self._there(part))

    def settle(self, parts: Iterable[torch.Tensor]) -> None:
        self.inner.settle(list(self.group.gather(torch.stack(list(parts)))))

    def gradient(self, products: torch.Tensor, bias: torch.Tensor, part: slice) -> torch.Tensor:
        return self.inner.gradient(products, bias, self._there(part))

    def value(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        return self.inner.value(z, self._there(part))

    def pointwise(self) -> Pointwise | None:
        whole = self.inner.pointwise()
        if whole is None:
            return None
        edges = torch.tensor([self.own.start, self.own.stop], device=whole.columns.device)
        first, last = torch.searchsorted(whole.columns, edges).tolist()

        def at(z: torch.Tensor) -> torch.Tensor:
            every = z.new_zeros(len(whole.columns))
            every[first:last] = z
            return whole.at(every)[first:last]

        columns = whole.columns[first:last] - self.own.start
        return replace(whole, rows=whole.rows[first:last], columns=columns, at=at)
