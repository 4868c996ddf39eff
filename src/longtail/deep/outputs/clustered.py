"""``Clustered``: a layer with a second one beside it, over clusters of its labels.

A layer with few weights per label hands noisy gradients to an encoder at first. A small dense layer
over clusters of labels helps it over that time: ``(1 - g) main + g auxiliary``, where g falls from
``weight`` to zero along half a cosine over ``until`` steps; the layer is then as if it was alone.
The target of a cluster is 1 where the row has any label of it; its loss is the binary
cross-entropy, averaged over rows and clusters. Both read the same vectors, dropout included.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from longtail.deep.batches.sparse_rows import Batch
from longtail.deep.batches.targets import LabelBatch
from longtail.deep.objectives.binary import Binary
from longtail.deep.objectives.objective import Objective
from longtail.deep.outputs.full import Full
from longtail.deep.outputs.layer import Layer

__all__ = ["Clustered"]

_LOSS = Binary(reduction="mean")


class Clustered(Layer):
    """``main``: the layer of labels; ``head``: that of clusters; ``cluster_of`` (L,) int64."""

    def __init__(
        self, main: Layer, head: Full, cluster_of: torch.Tensor, *, weight: float, until: int
    ) -> None:
        self.main, self.head, self.cluster_of = main, head, cluster_of
        self.weight, self.until = weight, until
        self.pool = main.pool

    @property
    def n_labels(self) -> int:
        return self.main.n_labels

    @property
    def device(self) -> torch.device:
        return self.main.device

    def share(self, step: int) -> float:
        """Return the weight g of the auxiliary loss in a step, counted from 0."""
        if step >= self.until:
            return 0.0
        return self.weight * 0.5 * (1 + math.cos(math.pi * step / self.until))

    def scores(self, h: torch.Tensor, part: slice) -> torch.Tensor:
        return self.main.scores(h, part)

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
        share = self.share(self.steps)
        self.steps += 1
        if not share:
            return self.main.step(h, targets, objective, rate, want_loss=want_loss)
        main = replace(objective, scale=objective.scale * (1 - share))
        loss, gradient = self.main.step(h, targets, main, rate, want_loss=want_loss)
        more, further = self.head.step(
            h,
            cluster_targets(targets, self.cluster_of),
            replace(_LOSS, scale=share),
            rate,
            want_loss=want_loss,
        )
        if loss is not None and more is not None:
            loss = loss + more
        return loss, gradient + further

    def trained(self) -> dict[str, torch.Tensor]:
        return self.main.trained()

    def finite(self) -> bool:
        return self.main.finite()

    def arrays(self) -> dict[str, torch.Tensor]:
        both = (("main", self.main), ("head", self.head))
        return {f"{n}/{key}": a for n, layer in both for key, a in layer.arrays().items()}

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        for name, layer in (("main", self.main), ("head", self.head)):
            own = {k: a for k, a in arrays.items() if k.startswith(f"{name}/")}
            layer.load({key.removeprefix(f"{name}/"): array for key, array in own.items()}, steps)
        self.head.steps = min(steps, self.until)
        self.steps = steps


def cluster_targets(targets: LabelBatch, cluster_of: torch.Tensor) -> LabelBatch:
    """Return the clusters of the labels of a batch, each once per row."""
    labels, rows, values = targets.entries.by_column
    count = len(targets)
    pairs = torch.unique(cluster_of[labels[values > 0]] * count + rows[values > 0])
    clusters, owners = pairs // count, pairs % count
    ones = torch.ones(len(pairs), device=pairs.device)
    unique, counts = torch.unique_consecutive(clusters, return_counts=True)
    entries = Batch(
        clusters,
        ones,
        torch.zeros(count, dtype=torch.int64, device=pairs.device),
        (clusters, owners, ones),
        unique,
        torch.cumsum(counts, 0) - counts,
    )
    return LabelBatch(entries)
