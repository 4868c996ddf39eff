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

__all__ = ["CHUNK", "Adam", "Moments", "Parameters", "hidden_layer", "product", "train_step"]

CHUNK = 512
GPU_CHUNK = 16_384


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
        self, weights: torch.Tensor, moments: Moments, gradient: torch.Tensor, step: int
    ) -> None:
        """Changes ``weights`` and ``moments`` in place. The decay is decoupled (AdamW)."""
        moments.first.lerp_(gradient, 1 - self.beta1)
        moments.second.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        correction2 = (1 - self.beta2**step) ** 0.5
        rate = self.learning_rate * correction2 / (1 - self.beta1**step)
        if self.weight_decay:
            weights.mul_(1 - self.learning_rate * self.weight_decay)
        divisor = moments.second.sqrt().add_(self.epsilon * correction2)
        weights.addcdiv_(moments.first, divisor, value=-rate)


def chunk_width(device: torch.device) -> int:
    """Outputs that are taken at a time."""
    return CHUNK if device.type == "cpu" else GPU_CHUNK


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a b`` in float32, on a CPU the same bits for any number of threads."""
    if a.device.type != "cpu":
        return (a @ b).float()
    total = (a[:, :CHUNK] @ b[:CHUNK]).float()
    for begin in range(CHUNK, a.shape[1], CHUNK):
        total += a[:, begin : begin + CHUNK] @ b[begin : begin + CHUNK]
    return total


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
    outputs, width = len(weights["w2"]), chunk_width(h.device)
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
        _update(parameters, "w2", part, product(g_product.T, h_product), adam, step)
        _update(parameters, "b2", part, g.sum(0), adam, step)
    if dropout_mask is not None:
        gradient_h *= dropout_mask
    gradient_h *= active > 0
    _update(parameters, "b1", slice(None), gradient_h.sum(0), adam, step)
    columns, gradient = batch.transposed_times(gradient_h)
    _update_rows(parameters, columns, gradient, adam, step)


def _update(
    parameters: Parameters, name: str, part: slice, gradient: torch.Tensor, adam: Adam, step: int
) -> None:
    weights, moments = parameters.weights[name][part], parameters.moments[name]
    mask = parameters.masks.get(name)
    if mask is not None:  # zero moments and a zero gradient: a pruned weight stays where it is
        gradient = gradient * mask[part]
    adam.update(weights, Moments(moments.first[part], moments.second[part]), gradient, step)


def _update_rows(
    parameters: Parameters, rows: torch.Tensor, gradient: torch.Tensor, adam: Adam, step: int
) -> None:
    weights, moments = parameters.weights["w1"], parameters.moments["w1"]
    mask = parameters.masks.get("w1")
    if mask is not None:
        gradient = gradient * mask[rows]
    taken = weights[rows]
    local = Moments(moments.first[rows], moments.second[rows])
    adam.update(taken, local, gradient, step)
    weights[rows], moments.first[rows], moments.second[rows] = taken, local.first, local.second


def _log_sum_exp(h: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """Of the logits of every row, (b, 1), chunk by chunk."""
    parts, width = [], chunk_width(h.device)
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
