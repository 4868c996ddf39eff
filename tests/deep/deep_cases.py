"""What tests of the deep room share: steps of a perceptron."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def one_step(
    X: np.ndarray,
    Y: np.ndarray,
    weights: Any,
    loss: str,
    *,
    device: str = "cpu",
    rate: float = 0.01,
    steps: int = 1,
    pruned_to: int | None = None,
    **objective: Any,
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Take steps of a ``Bag`` and a ``Full`` layer on a batch; return the weights and Adam's first
    moments by name (w1, b1, w2, b2), and the loss before the last step.
    """
    import torch

    from longtail.deep.batches.sparse_rows import SparseRows
    from longtail.deep.encoders.bag import Bag
    from longtail.deep.objectives import named
    from longtail.deep.optimisers import LazyAdam
    from longtail.deep.outputs import Full
    from longtail.deep.training.pruning import prune

    place = torch.device(device)
    w1, b1, w2, b2 = (w.clone().to(place) for w in weights)
    encoder, output = Bag(w1, b1), Full(w2, b2)
    optimiser, goal = LazyAdam(encoder, 0.0), named(loss, **objective)
    rows = torch.arange(len(X), device=place)
    labels = Y if loss in ("squared", "length") else sp.csr_matrix(Y)
    targets = goal.rows(labels, place, 0).take(rows)
    batch = SparseRows(X, place).take(rows)
    value = None
    for step in range(steps):
        h = encoder(batch)
        value, gradient = output.step(h.detach(), targets, goal, rate, want_loss=True)
        h.backward(gradient)
        optimiser.step(rate)
        if step == 0 and pruned_to is not None:
            prune([optimiser.states["weight"], output.weights], pruned_to)
    state = optimiser.states
    arrays = (state["weight"], state["bias"], output.weights, output.bias)
    named_arrays = dict(zip(("w1", "b1", "w2", "b2"), arrays, strict=True))
    values = {name: array.values.detach().cpu() for name, array in named_arrays.items()}
    first = {name: array.first.detach().cpu() for name, array in named_arrays.items()}
    return values, first, value
