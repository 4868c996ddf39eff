"""What a batch should come to, and the gradient of its loss by the logits.

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
"""

from __future__ import annotations

from itertools import pairwise

import torch

from longtail.deep.batches import Batch
from longtail.deep.fused import logit_gradient
from longtail.deep.outputs import Outputs

__all__ = ["REGRESSIONS", "Codes", "Labels"]

REGRESSIONS = ("squared", "length")


def sigmoid(z: torch.Tensor) -> torch.Tensor:
    """Of every entry. torch's own rounds the ends of what each thread gets differently."""
    return 1 / (1 + torch.exp(-z))


class Codes:
    """Dense targets ``t`` (b, c) of a regression."""

    def __init__(self, targets: torch.Tensor, outputs: Outputs, *, by_length: bool) -> None:
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


class Labels:
    """The labels of a batch, by chunk, and what their loss makes of logits."""

    def __init__(self, labels: Batch, outputs: Outputs, *, softmax: bool) -> None:
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
