"""One step of training, written out: forward, gradient, Adam.

The network is ``z = W2 relu(W1^T x + b1) + b2``. Its outputs are taken in chunks: logits of a
chunk, their gradient, its share of the gradient of the hidden layer, its update. Neither the logits
nor the gradient of W2 ever exist in full, so memory grows with the weights alone.

On a CPU, sums over more than ``CHUNK`` terms are cut at multiples of it: a matrix product leaves it
to the number of threads how a longer sum is cut, and then the last bits depend on them. On a GPU
chunks are wide, since every kernel launch costs as much as a small product, and but for a narrow
last one they are multiples of ``ALIGNED``: rows that do not begin at multiples of 16 bytes are
multiplied by kernels that take five times as long.

A loss is a sum over outputs and a mean over the rows of the batch:

=========  ========================================================  ===========================
loss       of a row                                                  gradient by z_j
=========  ========================================================  ===========================
sigmoid    ``sum_j log(1 + e^{z_j}) - y_j z_j``                      ``sigmoid(z_j) - y_j``
softmax    ``log sum_j e^{z_j} - sum_j p_j z_j``, p = y / sum(y)     ``softmax(z)_j - p_j``
squared    ``1/2 sum_j (z_j - t_j)^2``                               ``z_j - t_j``
length     ``sqrt(sum_j (z_j - t_j)^2)``                             ``(z_j - t_j) / |z - t|``
=========  ========================================================  ===========================

The first layer sees only the features of the batch: gradient and Adam moments of the other rows are
left alone (lazy Adam), which for sparse text saves nearly all of the work.
"""

from __future__ import annotations

from itertools import pairwise

import torch

from longtail.deep.adam import Adam, Moments, Parameters
from longtail.deep.batches import Batch
from longtail.deep.fused import logit_gradient

__all__ = ["REGRESSIONS", "chunk_edges", "hidden_layer", "product", "train_step"]

REGRESSIONS = ("squared", "length")
CHUNK = 512
ALIGNED = 8
GPU_CHUNK = 16_384
GPU_LOGITS = 1 << 25  # of a chunk, where the batch is small


def chunk_edges(rows: int, outputs: int, device: torch.device) -> list[int]:
    """Where the chunks of outputs begin and end, for a batch of so many rows."""
    if device.type == "cpu":
        return [*range(0, outputs, CHUNK), outputs]
    width = max(GPU_CHUNK, GPU_LOGITS // max(1, rows)) // ALIGNED * ALIGNED
    edges = [*range(0, outputs, width), outputs]
    last = outputs // ALIGNED * ALIGNED
    if edges[-2] < last < outputs:
        edges.insert(-1, last)
    return edges


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a b`` in float32, on a CPU the same bits for any number of threads."""
    if a.device.type != "cpu":
        return (a @ b).float()
    total = (a[:, :CHUNK] @ b[:CHUNK]).float()
    for begin in range(CHUNK, a.shape[1], CHUNK):
        total += a[:, begin : begin + CHUNK] @ b[begin : begin + CHUNK]
    return total


def outer_product(g: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """``g^T h``. On a GPU in the precision of its factors, which the update takes as it is."""
    return product(g.T, h) if g.device.type == "cpu" else g.T @ h


def sigmoid(z: torch.Tensor) -> torch.Tensor:
    """Of every entry. torch's own rounds the ends of what each thread gets differently."""
    return 1 / (1 + torch.exp(-z))


def hidden_layer(batch: Batch, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """``relu(W1^T x + b1)``, (b, h)."""
    return torch.relu_(batch.times(weights["w1"]) + weights["b1"])


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
) -> None:
    """Updates the parameters on one batch. ``targets`` are labels, or dense (b, L) for a regression.

    ``step`` counts from 1. ``low_precision`` multiplies in bfloat16; sums, weights and moments stay
    float32.
    """
    weights = parameters.weights
    active = hidden_layer(batch, weights)
    h = active if dropout_mask is None else active * dropout_mask
    gradient_h = torch.zeros_like(h)
    outputs = _Outputs(h.to(torch.bfloat16) if low_precision else h, weights)
    wanted: _Labels | _Codes
    if isinstance(targets, Batch):
        wanted = _Labels(targets, outputs, softmax=loss == "softmax")
    else:
        wanted = _Codes(targets, outputs, by_length=loss == "length")
    for begin, end in pairwise(outputs.edges):
        part = slice(begin, end)
        w2 = outputs.weights_of(part)
        g = wanted.gradient(outputs.h @ w2.T if h.is_cuda else product(outputs.h, w2.T), part)
        g_product = g.to(outputs.h.dtype)
        gradient_h += product(g_product, w2)
        _update(parameters, "w2", part, outer_product(g_product, outputs.h), adam, step)
        _update(parameters, "b2", part, g.sum(0, dtype=torch.float32), adam, step)
    if dropout_mask is not None:
        gradient_h *= dropout_mask
    gradient_h *= active > 0
    _update(parameters, "b1", slice(None), gradient_h.sum(0), adam, step)
    gradient, mask = batch.transposed_times(gradient_h), parameters.masks.get("w1")
    moments = parameters.moments["w1"]
    adam.update(weights["w1"], moments, gradient, step, rows=batch.unique, mask=mask)


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

    def __init__(self, h: torch.Tensor, weights: dict[str, torch.Tensor]) -> None:
        self.h, self.w2, self.bias = h, weights["w2"], weights["b2"]
        self.edges = chunk_edges(len(h), len(self.w2), h.device)

    def weights_of(self, part: slice) -> torch.Tensor:
        return self.w2[part].to(self.h.dtype)

    def logits(self, part: slice) -> torch.Tensor:
        """Of a chunk, (b, w) float32."""
        return product(self.h, self.weights_of(part).T) + self.bias[part]


class _Codes:
    """Dense targets ``t`` (b, c) of a regression."""

    def __init__(self, targets: torch.Tensor, outputs: _Outputs, *, by_length: bool) -> None:
        self.targets, self.bias = targets, outputs.bias
        self.lengths: torch.Tensor | None = None
        if by_length:
            squares = torch.zeros(len(targets), 1, device=targets.device)
            for edge in pairwise(outputs.edges):
                part = slice(*edge)
                squares += ((outputs.logits(part) - targets[:, part]) ** 2).sum(1, keepdim=True)
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
            self.normaliser = _log_sum_exp(outputs)
            sums = torch.zeros(len(labels), device=self.values.device)
            sums.index_add_(0, self.rows, self.values)
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


def _log_sum_exp(outputs: _Outputs) -> torch.Tensor:
    """Of the logits of every row, (b, 1), chunk by chunk."""
    parts = [
        torch.logsumexp(outputs.logits(slice(*edge)), dim=1) for edge in pairwise(outputs.edges)
    ]
    return torch.logsumexp(torch.stack(parts), dim=0)[:, None]
