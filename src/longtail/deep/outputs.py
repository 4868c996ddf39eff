"""Both layers of a network on a batch, in chunks of outputs.

On a CPU each chunk is the work of one thread of a pool, as are blocks of rows and of features in
the first layer, and what the chunks contribute to the gradient of the hidden layer is added in
their order. Left to torch, a product of several threads cuts its sums as it likes, so that the last
bits depend on their number; and threads that wait for each other by spinning, on a core that
another program uses, take many times as long as one alone.

On a GPU chunks are wide, since every kernel launch costs as much as a small product, and but for a
narrow last one they are multiples of ``ALIGNED``: rows that do not begin at multiples of 16 bytes
are multiplied by other kernels, several times as slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from itertools import pairwise
from typing import TypeVar

import torch

from longtail.deep.batches import Batch

__all__ = ["Outputs", "all_logits", "chunk_edges", "edges", "hidden_layer", "in_order"]

CHUNK = 256
ALIGNED = 8
GPU_CHUNK = 16_384
GPU_LOGITS = 1 << 25  # of a chunk, where the batch is small
_AHEAD = 16  # chunks that wait to be added up, on a CPU
_ROWS = 64  # of the first layer, for one thread at a time

_Made = TypeVar("_Made")


def chunk_edges(rows: int, outputs: int, device: torch.device) -> list[int]:
    """Where the chunks of outputs begin and end, for a batch of so many rows."""
    if device.type == "cpu":
        return edges(outputs, CHUNK)
    width = max(GPU_CHUNK, GPU_LOGITS // max(1, rows)) // ALIGNED * ALIGNED
    out = edges(outputs, width)
    last = outputs // ALIGNED * ALIGNED
    if out[-2] < last < outputs:
        out.insert(-1, last)
    return out


def edges(count: int, width: int) -> list[int]:
    """Where pieces of so many begin and end."""
    return [*range(0, count, max(1, width)), count]


def in_order(
    pool: Executor | None, work: Callable[[slice], _Made], bounds: list[int]
) -> Iterator[_Made]:
    """What ``work`` makes of every chunk, in their order; some ahead at a time with a pool."""
    parts = [slice(*edge) for edge in pairwise(bounds)]
    if pool is None:
        yield from map(work, parts)
        return
    for begin in range(0, len(parts), _AHEAD):
        yield from pool.map(work, parts[begin : begin + _AHEAD])


def hidden_layer(
    batch: Batch, weights: dict[str, torch.Tensor], pool: Executor | None = None
) -> torch.Tensor:
    """``relu(W1^T x + b1)``, (b, h)."""
    if pool is None or not len(batch):
        return torch.relu_(batch.times(weights["w1"]) + weights["b1"])

    def some(rows: slice) -> torch.Tensor:
        return torch.relu_(batch.times(weights["w1"], rows) + weights["b1"])

    return torch.cat(list(in_order(pool, some, edges(len(batch), _ROWS))))


class Outputs:
    """The output layer on hidden values ``h`` (b, h), in chunks."""

    def __init__(
        self, h: torch.Tensor, weights: dict[str, torch.Tensor], pool: Executor | None
    ) -> None:
        self.h, self.w2, self.bias, self.pool = h, weights["w2"], weights["b2"], pool
        self.edges = chunk_edges(len(h), len(self.w2), h.device)

    def weights_of(self, part: slice) -> torch.Tensor:
        return self.w2[part].to(self.h.dtype)

    def logits(self, part: slice) -> torch.Tensor:
        """Of a chunk, (b, w) float32."""
        return (self.h @ self.weights_of(part).T).float() + self.bias[part]

    def each(self, work: Callable[[torch.Tensor, slice], torch.Tensor]) -> Iterable[torch.Tensor]:
        """What ``work`` makes of the logits of every chunk."""
        return in_order(self.pool, lambda part: work(self.logits(part), part), self.edges)

    def log_sum_exp(self) -> torch.Tensor:
        """Of the logits of every row, (b, 1)."""
        parts = list(self.each(lambda z, _: torch.logsumexp(z, dim=1)))
        return torch.logsumexp(torch.stack(parts), dim=0)[:, None]


def all_logits(
    batch: Batch, weights: dict[str, torch.Tensor], pool: Executor | None
) -> torch.Tensor:
    """Of a batch, (b, L) float32."""
    outputs = Outputs(hidden_layer(batch, weights, pool), weights, pool)
    return torch.cat(list(in_order(pool, outputs.logits, outputs.edges)), dim=1)
