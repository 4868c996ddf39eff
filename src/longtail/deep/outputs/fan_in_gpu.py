"""Scores and gradients of a fixed fan-in layer on a GPU, by the kernels of ``fan_kernels``."""

from __future__ import annotations

from typing import Any

import torch

from longtail.deep.triton_modules import kernels

__all__ = ["fan_in_kernels", "gradients", "scores"]

_ROWS = 64  # of a batch, for one program
_LABELS = 32


def scores(a: torch.Tensor, values: torch.Tensor, index: torch.Tensor, part: slice) -> torch.Tensor:
    """Return the scores (b, w) of a chunk of labels, without a bias; turned in memory."""
    b, width = len(a), part.stop - part.start
    out = torch.empty(width, b, device=a.device)
    grid = (-(-width // _LABELS), -(-b // _ROWS))
    _kernels().scores[grid](
        a.T.contiguous(),
        values[:, part],
        _signed(index[:, part]),
        out,
        b,
        width,
        values.shape[1],
        F=len(values),
        LABELS=_LABELS,
        ROWS=_ROWS,
        num_warps=4,
    )
    return out.T


def gradients(
    a: torch.Tensor,
    g: torch.Tensor,
    values: torch.Tensor,
    index: torch.Tensor,
    part: slice,
    through: torch.Tensor,
) -> torch.Tensor:
    """Add the gradient of the inputs to ``through`` (b, h); return that of the values, (f, w)."""
    b, width = len(a), part.stop - part.start
    slopes = g.T.contiguous()
    out = torch.empty(len(values), width, device=a.device)
    back = torch.zeros(a.shape[1], b, device=a.device)
    _kernels().gradients[(-(-width // _LABELS),)](
        a.T.contiguous(),
        slopes,
        values[:, part],
        _signed(index[:, part]),
        back,
        out,
        b,
        width,
        values.shape[1],
        F=len(values),
        LABELS=_LABELS,
        ROWS=_ROWS,
        num_warps=4,
    )
    through += back.T
    return out


def _signed(index: torch.Tensor) -> torch.Tensor:
    return index.view(torch.int16) if index.dtype == torch.uint16 else index


def fan_in_kernels() -> Any:
    """Return this module, or None without Triton."""
    import sys

    return sys.modules[__name__] if _kernels() is not None else None


def _kernels() -> Any:
    return kernels("outputs.fan_kernels")
