"""One step of training, written out: forward, gradient, Adam.

The network is ``z = W2 relu(W1^T x + b1) + b2``. Its outputs are taken in chunks: logits of a
chunk, their gradient, its share of the gradient of the hidden layer, its update. Neither the logits
nor the gradient of W2 ever exist in full, so memory grows with the weights alone.
``longtail.deep.outputs`` has the chunks, ``longtail.deep.targets`` the losses.

The first layer sees only the features of the batch: gradient and Adam moments of the other rows are
left alone (lazy Adam), which for sparse text saves nearly all of the work.
"""

from __future__ import annotations

from concurrent.futures import Executor

import torch

from longtail.deep.adam import Adam, Moments, Parameters
from longtail.deep.batches import Batch
from longtail.deep.outputs import Outputs, edges, hidden_layer, in_order
from longtail.deep.targets import Codes, Labels

__all__ = ["train_step"]

_FEATURES = 2048  # of the first layer, for one thread at a time


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
    outputs = Outputs(h.to(torch.bfloat16) if low_precision else h, weights, pool)
    wanted: Labels | Codes
    if isinstance(targets, Batch):
        wanted = Labels(targets, outputs, softmax=loss == "softmax")
    else:
        wanted = Codes(targets, outputs, by_length=loss == "length")

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
    for _ in in_order(pool, learn, edges(len(batch.unique), width)):
        pass


def _update(
    parameters: Parameters, name: str, part: slice, gradient: torch.Tensor, adam: Adam, step: int
) -> None:
    """Of one chunk of outputs. Vectors are updated as matrices of one row."""
    moments, mask = parameters.moments[name], parameters.masks.get(name)
    arrays = [parameters.weights[name][part], moments.first[part], moments.second[part], gradient]
    weights, first, second, gradient = (a if a.ndim > 1 else a[None] for a in arrays)
    kept = None if mask is None else mask[part]
    adam.update(weights, Moments(first, second), gradient, step, mask=kept)
