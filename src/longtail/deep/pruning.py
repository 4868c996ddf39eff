"""Unstructured magnitude pruning: which weights are left (DECLARE's baseline).

Storage stays dense; what is pruned is zero and stays zero, its Adam moments included.
"""

from __future__ import annotations

import torch

from longtail.deep.adam import Parameters

__all__ = ["PRUNED", "prune"]

PRUNED = ("w1", "w2")  # biases are few and stay


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
