"""Unstructured magnitude pruning: which weights are left (DECLARE's baseline).

Storage stays dense; what is pruned is zero and stays zero, its Adam moments included.
"""

from __future__ import annotations

import torch

from longtail.deep.adam import AdamArray
from longtail.deep.training.plan import Plan
from longtail.deep.training.pruning_schedule import kept_after_epoch

__all__ = ["Pruning", "prune"]


class Pruning:
    """Prunes some arrays together after every epoch, as a plan says. Biases are few and stay."""

    def __init__(self, arrays: list[AdamArray], plan: Plan) -> None:
        assert plan.keep is not None
        self.arrays, self.plan, self.keep = arrays, plan, plan.keep

    def after_epoch(self, epoch: int) -> None:
        plan, total = self.plan, sum(array.values.numel() for array in self.arrays)
        left = kept_after_epoch(plan.schedule, self.keep, total, epoch, plan.warmup, plan.epochs)
        if left < total:
            prune(self.arrays, left)

    def mask_zeros(self) -> None:
        """Take what is zero for pruned: a training that goes on from pruned weights."""
        for array in self.arrays:
            array.mask = array.values != 0

    @property
    def done(self) -> bool:
        """Whether no more weights are left than shall be."""
        left = sum(
            array.values.numel() if array.mask is None else int(array.mask.sum())
            for array in self.arrays
        )
        return left <= self.keep


def prune(arrays: list[AdamArray], keep: int) -> None:
    """Leave exactly the ``keep`` values largest in magnitude over all arrays, together."""
    flat = torch.cat([array.values.abs().flatten() for array in arrays])
    begin = 0
    for array in arrays:  # what is pruned never comes back
        end = begin + array.values.numel()
        if array.mask is not None:
            flat[begin:end][~array.mask.flatten()] = -1
        begin = end
    best = torch.topk(flat, min(keep, len(flat)), sorted=False).indices
    left = torch.zeros(len(flat), dtype=torch.bool, device=flat.device)
    left[best] = True
    begin = 0
    for array in arrays:
        array.mask = left[begin : begin + array.values.numel()].view_as(array.values)
        begin += array.values.numel()
        for values in (array.values, array.first, array.second):
            values *= array.mask
