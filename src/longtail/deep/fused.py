"""Three operations of a training step as one kernel each, for a GPU.

Written as tensor operations, an Adam update of n weights moves 16 n numbers (every operation reads
and writes its own), and an update of some rows of a matrix gathers and scatters three matrices on
top of that. The kernel here reads weight, two moments and gradient, and writes the first three:
7 n. A sum of embeddings is a gather that adds, here with one program per bag and block of columns;
on an H200, at the sizes of benchmarks/coded/gpu.py, that took a sixth of the time of torch's own.
The gradient of a loss by its logits reads a logit and writes a gradient, both in the precision of
the products, where tensor operations pass eight times over numbers twice as long.

The kernels are compiled by Triton, which comes with torch where there is a GPU; without it, the
tensor operations that the callers fall back on do the same to rounding.
"""

from __future__ import annotations

from typing import Any

import torch

from longtail.deep.triton_modules import kernels

__all__ = ["fused_adam", "logit_gradient", "sum_rows"]

_LARGEST_BLOCK = 1024


def fused_adam(
    arrays: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    gradient: torch.Tensor,
    *,
    rows: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
    rate: float,
    decay: float,
    beta1: float,
    beta2: float,
    epsilon: float,
) -> bool:
    """Update ``arrays``: weights, first and second moments, each (n, h) float32, in place.

    ``gradient`` (u, h), float32 or bfloat16, belongs to the rows numbered ``rows`` (u,), which are
    all different, or to all. Where ``mask`` (n, h) is false nothing changes but by decay, which
    leaves zeros alone. With m and v the new moments: ``w <- decay w - rate m / (sqrt(v) + eps)``.

    Returns False, having done nothing, where there is no kernel: not on a GPU, no Triton, or an
    array that is not contiguous.
    """
    weights, first, second = arrays
    kernels = _kernels() if weights.is_cuda else None
    dense = all(array.is_contiguous() for array in (*arrays, gradient))
    if kernels is None or not dense or weights.ndim != 2 or not gradient.numel():
        return False
    count, width = gradient.shape
    block = _block(width)
    kernels.adam[(count, -(-width // block))](
        weights,
        first,
        second,
        gradient,
        weights if rows is None else rows,
        weights if mask is None else mask,
        width,
        rate,
        decay,
        1 - beta1,
        beta2,
        1 - beta2,
        epsilon,
        HAS_ROWS=rows is not None,
        HAS_MASK=mask is not None,
        BLOCK=block,
    )
    return True


def sum_rows(
    matrix: torch.Tensor, index: torch.Tensor, offsets: torch.Tensor, values: torch.Tensor
) -> torch.Tensor | None:
    """Return ``out[i] = sum_e values[e] matrix[index[e]]`` over the entries e of bag i, (n, h)
    float32.

    ``offsets`` (n,): where each bag begins. Entries are added in their order: the same bits on
    every run. None where there is no kernel.
    """
    kernels = _kernels() if matrix.is_cuda else None
    dense = all(array.is_contiguous() for array in (matrix, index, offsets, values))
    if kernels is None or not dense or matrix.dtype != torch.float32 or not len(offsets):
        return None
    count, width = len(offsets), matrix.shape[1]
    out = torch.empty(count, width, device=matrix.device)
    block = _block(width)
    kernels.sum_rows[(count, -(-width // block))](
        matrix, index, offsets, values, out, len(index), count, width, BLOCK=block
    )
    return out


def logit_gradient(
    products: torch.Tensor, bias: torch.Tensor, normaliser: torch.Tensor | None, scale: float
) -> torch.Tensor | None:
    """Return ``scale sigmoid(z)``, or ``scale exp(z - normaliser)``, for logits ``z = products +
    bias``.

    ``products`` (b, w), ``bias`` (w,), ``normaliser`` (b, 1) for a softmax; the result has the type
    of ``products``. It is the gradient of either loss for rows without labels. None where there is
    no kernel.
    """
    kernels = _kernels() if products.is_cuda else None
    given = [products, bias] if normaliser is None else [products, bias, normaliser]
    if kernels is None or not all(a.is_contiguous() for a in given) or not products.numel():
        return None
    count, width = products.shape
    out, block = torch.empty_like(products), _block(width)
    kernels.logit_gradient[(count, -(-width // block))](
        products,
        bias,
        bias if normaliser is None else normaliser,
        out,
        width,
        scale,
        SOFTMAX=normaliser is not None,
        BLOCK=block,
    )
    return out


def _block(width: int) -> int:
    """Return columns of a program: a power of two."""
    return min(_LARGEST_BLOCK, 1 << (width - 1).bit_length())


def _kernels() -> Any:
    return kernels("fused_kernels")
