"""One step of training, written out: forward, gradient, Adam.

The network is ``z = W2 relu(W1^T x + b1) + b2``. Its outputs are taken in chunks: logits of a
chunk, their gradient, its share of the gradient of the hidden layer, its update. Neither the logits
nor the gradient of W2 ever exist in full, so memory grows with the weights alone.

On a CPU each chunk is the work of one thread of a pool, as are blocks of rows and of features in
the first layer, and what the chunks contribute to the gradient of the hidden layer is added in
their order. Left to torch, a product of several threads cuts its sums as it likes, so that the last
bits depend on their number; and threads that wait for each other by spinning, on a core that
another program uses, take many times as long as one alone.

On a GPU chunks are wide, since every kernel launch costs as much as a small product, and but for a
narrow last one they are multiples of ``ALIGNED``: rows that do not begin at multiples of 16 bytes
are multiplied by kernels that take five times as long.

A loss is a sum over outputs and a mean over the rows of the batch:

=========  ========================================================  ===========================
loss       of a row                                                  gradient by z_j
=========  ========================================================  ===========================
sigmoid    ``sum_j log(1 + e^{z_j}) - y_j z_j``                      ``sigmoid(z_j) - y_j``
softmax    ``log sum_j e^{z_j} - sum_j p_j z_j``, p = y / sum(y)     ``softmax(z)_j - p_j``
           (a row without labels: none)                              0
squared    ``1/2 sum_j (z_j - t_j)^2``                               ``z_j - t_j``
length     ``sqrt(sum_j (z_j - t_j)^2)``                             ``(z_j - t_j) / |z - t|``
=========  ========================================================  ===========================

The first layer sees only the features of the batch: gradient and Adam moments of the other rows are
left alone (lazy Adam), which for sparse text saves nearly all of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from itertools import pairwise
from typing import TypeVar

import torch

from longtail.deep.adam import Adam, Moments, Parameters
from longtail.deep.batches import Batch
from longtail.deep.fused import logit_gradient

__all__ = ["REGRESSIONS", "all_logits", "chunk_edges", "hidden_layer", "train_step"]

REGRESSIONS = ("squared", "length")
CHUNK = 256
ALIGNED = 8
GPU_CHUNK = 16_384
GPU_LOGITS = 1 << 25  # of a chunk, where the batch is small
_AHEAD = 16  # chunks that wait to be added up, on a CPU
_ROWS, _FEATURES = 64, 2048  # of the first layer, for one thread at a time

_Made = TypeVar("_Made")


def chunk_edges(rows: int, outputs: int, device: torch.device) -> list[int]:
    """Where the chunks of outputs begin and end, for a batch of so many rows."""
    if device.type == "cpu":
        return _edges(outputs, CHUNK)
    width = max(GPU_CHUNK, GPU_LOGITS // max(1, rows)) // ALIGNED * ALIGNED
    edges = _edges(outputs, width)
    last = outputs // ALIGNED * ALIGNED
    if edges[-2] < last < outputs:
        edges.insert(-1, last)
    return edges


def _edges(count: int, width: int) -> list[int]:
    return [*range(0, count, max(1, width)), count]


def in_order(
    pool: Executor | None, work: Callable[[slice], _Made], edges: list[int]
) -> Iterator[_Made]:
    """What ``work`` makes of every chunk, in their order; some ahead at a time with a pool."""
    parts = [slice(*edge) for edge in pairwise(edges)]
    if pool is None:
        yield from map(work, parts)
        return
    for begin in range(0, len(parts), _AHEAD):
        yield from pool.map(work, parts[begin : begin + _AHEAD])


def sigmoid(z: torch.Tensor) -> torch.Tensor:
    """Of every entry. torch's own rounds the ends of what each thread gets differently."""
    return 1 / (1 + torch.exp(-z))


def hidden_layer(
    batch: Batch, weights: dict[str, torch.Tensor], pool: Executor | None = None
) -> torch.Tensor:
    """``relu(W1^T x + b1)``, (b, h)."""
    if pool is None or not len(batch):
        return torch.relu_(batch.times(weights["w1"]) + weights["b1"])

    def some(rows: slice) -> torch.Tensor:
        return torch.relu_(batch.times(weights["w1"], rows) + weights["b1"])

    return torch.cat(list(in_order(pool, some, _edges(len(batch), _ROWS))))


def train_step(
    parameters: Parameters,
    batch: Batch,
    targets: Batch | torch.Tensor,
    loss: str,
    adam: Adam,
    step: int,
    *,
    dropout_mask: torch.Tensor | None = None,
    low_precision: bool = False,
    pool: Executor | None = None,
) -> None:
    """Updates the parameters on one batch. ``targets``: labels, or dense (b, L) for a regression.

    ``step`` counts from 1. ``low_precision`` multiplies in bfloat16; sums, weights and moments stay
    float32. ``pool``: threads for the chunks of outputs, on a CPU.
    """
    weights = parameters.weights
    active = hidden_layer(batch, weights, pool)
    h = active if dropout_mask is None else active * dropout_mask
    gradient_h = torch.zeros_like(h)
    outputs = _Outputs(h.to(torch.bfloat16) if low_precision else h, weights, pool)
    wanted: _Labels | _Codes
    if isinstance(targets, Batch):
        wanted = _Labels(targets, outputs, softmax=loss == "softmax")
    else:
        wanted = _Codes(targets, outputs, by_length=loss == "length")

    def learn(part: slice) -> torch.Tensor:
        """Updates a chunk of outputs; returns the gradient of h through it."""
        w2 = outputs.weights_of(part)
        g = wanted.gradient(outputs.h @ w2.T, part)
        g_product = g.to(outputs.h.dtype)
        through = g_product @ w2
        _update(parameters, "w2", part, g_product.T @ outputs.h, adam, step)
        _update(parameters, "b2", part, g.sum(0, dtype=torch.float32), adam, step)
        return through

    for through in in_order(pool, learn, outputs.edges):
        gradient_h += through
    if dropout_mask is not None:
        gradient_h *= dropout_mask
    gradient_h *= active > 0
    _update(parameters, "b1", slice(None), gradient_h.sum(0), adam, step)
    _update_first_layer(parameters, batch, gradient_h, adam, step, pool)


def _update_first_layer(
    parameters: Parameters,
    batch: Batch,
    gradient_h: torch.Tensor,
    adam: Adam,
    step: int,
    pool: Executor | None,
) -> None:
    """Of the features that occur in the batch."""
    arrays = parameters.weights["w1"], parameters.moments["w1"]
    mask = parameters.masks.get("w1")

    def learn(some: slice) -> None:
        gradient = batch.transposed_times(gradient_h, None if pool is None else some)
        adam.update(*arrays, gradient, step, rows=batch.unique[some], mask=mask)

    width = len(batch.unique) if pool is None else _FEATURES
    for _ in in_order(pool, learn, _edges(len(batch.unique), width)):
        pass


def all_logits(
    batch: Batch, weights: dict[str, torch.Tensor], pool: Executor | None
) -> torch.Tensor:
    """Of a batch, (b, L) float32."""
    outputs = _Outputs(hidden_layer(batch, weights, pool), weights, pool)
    return torch.cat(list(in_order(pool, outputs.logits, outputs.edges)), dim=1)


def _update(
    parameters: Parameters, name: str, part: slice, gradient: torch.Tensor, adam: Adam, step: int
) -> None:
    """Of one chunk of outputs. Vectors are updated as matrices of one row."""
    moments, mask = parameters.moments[name], parameters.masks.get(name)
    arrays = [parameters.weights[name][part], moments.first[part], moments.second[part], gradient]
    weights, first, second, gradient = (a if a.ndim > 1 else a[None] for a in arrays)
    kept = None if mask is None else mask[part]
    adam.update(weights, Moments(first, second), gradient, step, mask=kept)


class _Outputs:
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


class _Codes:
    """Dense targets ``t`` (b, c) of a regression."""

    def __init__(self, targets: torch.Tensor, outputs: _Outputs, *, by_length: bool) -> None:
        self.targets, self.bias = targets, outputs.bias
        self.lengths: torch.Tensor | None = None
        if by_length:
            squares = torch.zeros(len(targets), 1, device=targets.device)
            for part in outputs.each(lambda z, p: ((z - targets[:, p]) ** 2).sum(1, keepdim=True)):
                squares += part
            self.lengths = squares.sqrt_().clamp_(min=1e-12)

    def gradient(self, products: torch.Tensor, part: slice) -> torch.Tensor:
        """By the logits of a chunk, ``products + bias``."""
        g = products.float() + self.bias[part] - self.targets[:, part]
        if self.lengths is not None:
            g /= self.lengths
        g /= len(g)
        return g


class _Labels:
    """The labels of a batch, by chunk, and what their loss makes of logits."""

    def __init__(self, labels: Batch, outputs: _Outputs, *, softmax: bool) -> None:
        self.columns, self.rows, self.values = labels.by_column
        self.bias, self.n = outputs.bias, len(labels)
        self.normaliser: torch.Tensor | None = None
        if softmax:
            sums = torch.zeros(len(labels), device=self.values.device)
            sums.index_add_(0, self.rows, self.values)
            self.normaliser = outputs.log_sum_exp().masked_fill_(sums[:, None] == 0, torch.inf)
            self.values = self.values / sums[self.rows]
        bounds = [0, len(self.columns)]  # one chunk: no need to wait for what a GPU finds
        if len(outputs.edges) > 2:
            edges = torch.tensor(outputs.edges, device=self.columns.device)
            bounds = torch.searchsorted(self.columns, edges).tolist()
        ranges = (slice(*bound) for bound in pairwise(bounds))
        self.entries = dict(zip(outputs.edges, ranges, strict=False))

    def gradient(self, products: torch.Tensor, part: slice) -> torch.Tensor:
        """By the logits of a chunk, ``products + bias``."""
        entries, bias, norm = self.entries[part.start], self.bias[part], self.normaliser
        rows, columns = self.rows[entries], self.columns[entries] - part.start
        values = self.values[entries]
        fused = logit_gradient(products, bias, norm, 1 / self.n)
        if fused is not None:
            z = products[rows, columns].float() + bias[columns]
            p = sigmoid(z) if norm is None else torch.exp(z - norm[rows, 0])
            fused[rows, columns] = ((p - values) / self.n).to(fused.dtype)
            return fused
        z = products.float() + bias
        g = sigmoid(z) if norm is None else torch.exp(z - norm)
        g[rows, columns] = g[rows, columns] - values
        g /= self.n
        return g
