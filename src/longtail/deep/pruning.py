"""Unstructured magnitude pruning: which weights are left, and when (DECLARE's baseline).

Storage stays dense; what is pruned is zero and stays zero, its Adam moments included.
"""

from __future__ import annotations

import torch

from longtail.deep.step import Parameters

__all__ = ["SCHEDULES", "kept_after_epoch", "prune"]

SCHEDULES = ("gradual", "one_shot")
PRUNED = ("w1", "w2")  # biases are few and stay


def kept_after_epoch(
    schedule: str, keep: int, total: int, epoch: int, warmup: int, epochs: int
) -> int:
    """Weights left after ``epoch`` (counted from 1).

    ``one_shot``: all until the warm-up ends, then ``keep``. ``gradual``: from the end of the
    warm-up to two thirds of the epochs, falling by the cubic of Zhu and Gupta (2017),
    ``keep + (total - keep) (1 - t)^3``.

    >>> [kept_after_epoch("gradual", 100, 1000, epoch, 1, 9) for epoch in (0, 1, 2, 4, 6, 9)]
    [1000, 1000, 560, 157, 100, 100]
    """
    if epoch < warmup:
        return total
    if schedule == "one_shot":
        return keep
    end = max(warmup + 1, round(epochs * 2 / 3))
    t = min(1.0, (epoch - warmup) / (end - warmup))
    return keep + int((total - keep) * (1 - t) ** 3)


def prune(parameters: Parameters, keep: int) -> None:
    """Leaves exactly the ``keep`` weights largest in magnitude over both layers, together."""
    flat = torch.cat([parameters.weights[name].abs().flatten() for name in PRUNED])
    for mask, begin in _flat_masks(parameters):  # what is pruned never comes back
        flat[begin : begin + len(mask)][~mask] = -1
    best = torch.topk(flat, min(keep, len(flat)), sorted=False).indices
    left = torch.zeros(len(flat), dtype=torch.bool, device=flat.device)
    left[best] = True
    begin = 0
    for name in PRUNED:
        weights, moments = parameters.weights[name], parameters.moments[name]
        mask = left[begin : begin + weights.numel()].view_as(weights)
        begin += weights.numel()
        parameters.masks[name] = mask
        for array in (weights, moments.first, moments.second):
            array *= mask


def _flat_masks(parameters: Parameters) -> list[tuple[torch.Tensor, int]]:
    out, begin = [], 0
    for name in PRUNED:
        if name in parameters.masks:
            out.append((parameters.masks[name].flatten(), begin))
        begin += parameters.weights[name].numel()
    return out
