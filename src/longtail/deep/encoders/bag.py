"""``Bag``: a sum of embeddings, weighted by the values of sparse features, and a ReLU."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
import torch
from torch import nn

from longtail.deep.batches.sparse_rows import Batch
from longtail.deep.workers import edges, in_order

__all__ = ["Bag", "drawn_weights"]

_ROWS = 64  # of a batch, for one thread at a time
_FEATURES = 2048


def drawn_weights(rng: np.random.Generator, d: int, h: int, spread: float) -> np.ndarray:
    """Return first weights (d, h), drawn by NumPy: the same on every device."""
    return np.asarray(rng.standard_normal((d, h), np.float32) * np.float32(spread))


class Bag(nn.Module):
    """``relu(W^T x + b)`` for sparse rows x: ``weight`` (d, h), ``bias`` (h,).

    A row costs as much as it has features. The gradient of ``weight`` is sparse: it has the rows of
    the features that occur in the batch, so an optimiser that leaves the others alone saves nearly
    all of the work.

    ``pool``: threads for blocks of rows and features, on a CPU (``longtail.deep.workers``).
    """

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor, pool: Executor | None = None
    ) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.pool = pool
        self.width = int(weight.shape[1])
        self.sparse_gradients = self.unique_gradients = True

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return vectors (b, h)."""
        return _Active.apply(self.weight, self.bias, batch, self.pool)  # type: ignore[no-any-return]


class _Active(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Any, bias: Any, batch: Batch, pool: Executor | None) -> Any:
        def some(rows: slice | None) -> torch.Tensor:
            return torch.relu_(batch.times(weight, rows) + bias)

        if pool is None or not len(batch):
            active = some(None)
        else:
            active = torch.cat(list(in_order(pool, some, edges(len(batch), _ROWS))))
        ctx.save_for_backward(active)
        ctx.batch, ctx.pool, ctx.shape = batch, pool, weight.shape
        return active

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        (active,) = ctx.saved_tensors
        batch, pool = ctx.batch, ctx.pool
        gradient = gradient * (active > 0)
        if pool is None:
            values = batch.transposed_times(gradient)
        else:
            bounds = edges(len(batch.unique), _FEATURES)
            blocks = in_order(pool, lambda p: batch.transposed_times(gradient, p), bounds)
            values = torch.cat([gradient.new_zeros(0, gradient.shape[1]), *blocks])
        sparse = torch.sparse_coo_tensor(
            batch.unique[None], values, ctx.shape, is_coalesced=True, check_invariants=False
        )
        return sparse, gradient.sum(0), None, None
