"""One step of training, written out: forward, gradient, Adam.

The network is ``z = W2 relu(W1^T x + b1) + b2``. Its outputs are taken in chunks of ``CHUNK``
labels: logits of a chunk, their gradient, its share of the gradient of the hidden layer, its
update. Neither the logits nor the gradient of W2 ever exist in full, so memory grows with the
weights alone.

On a CPU, sums over more than ``CHUNK`` terms are cut at multiples of it: a matrix product leaves it
to the number of threads how a longer sum is cut, and then the last bits depend on them. On a GPU
chunks are wide, since every kernel launch costs as much as a small product.

A loss is a sum over outputs and a mean over the rows of the batch:

=========  ========================================================  ===========================
loss       of a row                                                  gradient by z_j
=========  ========================================================  ===========================
sigmoid    ``sum_j log(1 + e^{z_j}) - y_j z_j``                      ``sigmoid(z_j) - y_j``
softmax    ``log sum_j e^{z_j} - sum_j p_j z_j``, p = y / sum(y)     ``softmax(z)_j - p_j``
squared    ``1/2 sum_j (z_j - t_j)^2``                               ``z_j - t_j``
=========  ========================================================  ===========================

The first layer sees only the features of the batch: gradient and Adam moments of the other rows are
left alone (lazy Adam), which for sparse text saves nearly all of the work.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from longtail.deep.batches import Batch
from longtail.deep.fused import fused_adam

__all__ = ["CHUNK", "Adam", "Moments", "Parameters", "hidden_layer", "product", "train_step"]

CHUNK = 512
GPU_CHUNK = 16_384
GPU_LOGITS = 1 << 25  # of a chunk, where the batch is small


@dataclass
class Moments:
    """Adam's running means of the gradient and of its square."""

    first: torch.Tensor
    second: torch.Tensor

    @classmethod
    def like(cls, weights: torch.Tensor) -> Moments:
        return cls(torch.zeros_like(weights), torch.zeros_like(weights))


@dataclass
class Parameters:
    """``w1`` (d, h), ``b1`` (h,), ``w2`` (L, h), ``b2`` (L,) with their moments; ``masks`` of the
    weights that pruning has left, by name (bool, None for all).
    """

    weights: dict[str, torch.Tensor]
    moments: dict[str, Moments] = field(default_factory=dict)
    masks: dict[str, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, weights in self.weights.items():
            self.moments.setdefault(name, Moments.like(weights))


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015), with the step length corrected for the start."""

    learning_rate: float
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def update(
        self,
        weights: torch.Tensor,
        moments: Moments,
        gradient: torch.Tensor,
        step: int,
        *,
        rows: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> None:
        """Changes ``weights`` and ``moments`` in place. The decay is decoupled (AdamW).

        ``rows``: those the gradient is of, all different; None for all. ``mask``: weights that
        pruning has left, as wide as ``weights``; the others have zero moments and stay at zero.
        """
        correction2 = (1 - self.beta2**step) ** 0.5
        rate = self.learning_rate * correction2 / (1 - self.beta1**step)
        decay = 1 - self.learning_rate * self.weight_decay
        epsilon = self.epsilon * correction2
        if fused_adam(
            (weights, moments.first, moments.second),
            gradient,
            rows=rows,
            mask=mask,
            rate=rate,
            decay=decay,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=epsilon,
        ):
            return
        gradient = gradient.float()
        if mask is not None:
            gradient = gradient * (mask if rows is None else mask[rows])
        arrays = (weights, moments.first, moments.second)
        w, first, second = arrays if rows is None else (array[rows] for array in arrays)
        first.lerp_(gradient, 1 - self.beta1)
        second.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        if self.weight_decay:
            w.mul_(decay)
        w.addcdiv_(first, second.sqrt().add_(epsilon), value=-rate)
        if rows is not None:
            weights[rows], moments.first[rows], moments.second[rows] = w, first, second


def chunk_width(h: torch.Tensor) -> int:
    """Outputs that are taken at a time for hidden values ``h`` (b, h)."""
    if h.device.type == "cpu":
        return CHUNK
    return max(GPU_CHUNK, GPU_LOGITS // max(1, len(h)))


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
    """Updates the parameters on one batch. ``targets`` are labels, or dense (b, L) for "squared".

    ``step`` counts from 1. ``low_precision`` multiplies in bfloat16; sums, weights and moments stay
    float32.
    """
    weights = parameters.weights
    n = len(batch.offsets)
    active = hidden_layer(batch, weights)
    h = active if dropout_mask is None else active * dropout_mask
    h_product = h.to(torch.bfloat16) if low_precision else h
    gradient_h = torch.zeros_like(h)
    outputs, width = len(weights["w2"]), chunk_width(h)
    labels = _Labels(targets, outputs, width) if isinstance(targets, Batch) else None
    normaliser = None
    if loss == "softmax":
        normaliser = _log_sum_exp(h_product, weights)
    for begin in range(0, outputs, width):
        part = slice(begin, min(begin + width, outputs))
        w2 = weights["w2"][part]
        w2_product = w2.to(torch.bfloat16) if low_precision else w2
        z = product(h_product, w2_product.T) + weights["b2"][part]
        if loss == "squared":
            assert isinstance(targets, torch.Tensor)
            g = z - targets[:, part]
        else:
            assert labels is not None
            g = sigmoid(z) if normaliser is None else torch.exp(z - normaliser)
            labels.subtract_from(g, begin, normalised=normaliser is not None)
        g /= n
        g_product = g.to(torch.bfloat16) if low_precision else g
        gradient_h += product(g_product, w2_product)
        _update(parameters, "w2", part, outer_product(g_product, h_product), adam, step)
        _update(parameters, "b2", part, g.sum(0), adam, step)
    if dropout_mask is not None:
        gradient_h *= dropout_mask
    gradient_h *= active > 0
    _update(parameters, "b1", slice(None), gradient_h.sum(0), adam, step)
    columns, gradient = batch.transposed_times(gradient_h)
    mask = parameters.masks.get("w1")
    adam.update(weights["w1"], parameters.moments["w1"], gradient, step, rows=columns, mask=mask)


def _update(
    parameters: Parameters, name: str, part: slice, gradient: torch.Tensor, adam: Adam, step: int
) -> None:
    """Of one chunk of outputs. Vectors are updated as matrices of one row."""
    moments, mask = parameters.moments[name], parameters.masks.get(name)
    arrays = [parameters.weights[name][part], moments.first[part], moments.second[part], gradient]
    weights, first, second, gradient = (a if a.ndim > 1 else a[None] for a in arrays)
    kept = None if mask is None else mask[part]
    adam.update(weights, Moments(first, second), gradient, step, mask=kept)


def _log_sum_exp(h: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """Of the logits of every row, (b, 1), chunk by chunk."""
    parts, width = [], chunk_width(h)
    for begin in range(0, len(weights["w2"]), width):
        part = slice(begin, begin + width)
        z = product(h, weights["w2"][part].to(h.dtype).T) + weights["b2"][part]
        parts.append(torch.logsumexp(z, dim=1))
    return torch.logsumexp(torch.stack(parts), dim=0)[:, None]


class _Labels:
    """The labels of a batch, in order of chunk."""

    def __init__(self, labels: Batch, outputs: int, width: int) -> None:
        self.width = width
        self.columns, order = torch.sort(labels.columns, stable=True)
        self.rows, self.values = labels.rows[order], labels.values[order]
        sums = torch.zeros(len(labels.offsets), device=self.values.device)
        sums.index_add_(0, labels.rows, labels.values)
        self.shares = self.values / sums[self.rows]
        edges = torch.arange(0, outputs + width, width, device=self.columns.device)
        self.bounds = torch.searchsorted(self.columns, edges).tolist()

    def subtract_from(self, g: torch.Tensor, begin: int, *, normalised: bool) -> None:
        """``g[i, j] -= y[i, j]`` (or its share of the row) for the chunk that begins here."""
        part = slice(self.bounds[begin // self.width], self.bounds[begin // self.width + 1])
        values = self.shares if normalised else self.values
        place = (self.rows[part], self.columns[part] - begin)
        g[place] = g[place] - values[part]
