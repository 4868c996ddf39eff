"""Weights of 16 and 8 bits: how numbers are rounded to them, and what the bits stand for.

``bfloat16`` is float32 less its last 16 bits; weights are kept as int16. ``float8`` is E4M3: a
sign, four bits of exponent, three of mantissa, kept as uint8. Its normal numbers reach from 2^-6 to
448; below lies a grid of fixed step 2^-9, and beyond there is nothing: larger numbers become 448.

Stochastic rounding goes up with the chance that makes its mean the number itself: random bits are
added below those that are kept, and these are cut off. Times 2^-120, the normal numbers of E4M3 are
normal numbers of float32 and its grid below 2^-6 is float32's own grid of subnormal numbers, so
that the same bits serve both. Numbers that the format has stay as they are.
"""

from __future__ import annotations

import torch

__all__ = ["PRECISIONS", "decoded", "nearest", "random_bits", "raw_dtype", "stochastic"]

PRECISIONS = ("float32", "bfloat16", "float8")
_RAW = {"float32": torch.float32, "bfloat16": torch.int16, "float8": torch.uint8}
_LARGEST = 448.0
_WORD = 0xFFFFFFFF


def raw_dtype(precision: str) -> torch.dtype:
    """Return the type of the arrays that weights of a precision are kept in."""
    return _RAW[precision]


def random_bits(seed: int, shape: torch.Size, device: torch.device) -> torch.Tensor:
    """Return 32 random bits for every place of an array, int64: a hash of the place and the seed,
    the best of them first. Over all seeds, every value occurs as often at every place.

    The kernels of ``longtail.deep.outputs.chunk_kernels`` draw the same bits.
    """
    x = torch.arange(shape.numel(), device=device)
    x = (x * 0x9E3779B1 + seed) & _WORD
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & _WORD
    return x.view(shape)


def decoded(raw: torch.Tensor) -> torch.Tensor:
    """Return the float32 numbers that raw weights stand for; float32 as it is."""
    if raw.dtype == torch.int16:
        return (raw.to(torch.int32) << 16).view(torch.float32)
    if raw.dtype == torch.uint8:
        bits = raw.to(torch.int32)
        size = ((bits & 0x7F) << 20).view(torch.float32) * 2.0**120
        size = torch.where((bits & 0x7F) == 0x7F, torch.nan, size)
        return torch.where(bits >= 0x80, -size, size)
    return raw


def nearest(values: torch.Tensor, precision: str) -> torch.Tensor:
    """Return float32 numbers as raw weights, each the nearest; ties go to the even one."""
    if precision == "bfloat16":
        bits = values.contiguous().view(torch.int32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).to(torch.int16)
    if precision == "float8":
        inside = values.clamp(-_LARGEST, _LARGEST)
        return inside.to(torch.float8_e4m3fn).view(torch.uint8)
    return values.clone()


def stochastic(values: torch.Tensor, precision: str, bits: torch.Tensor) -> torch.Tensor:
    """Return float32 numbers as raw weights, rounded up or down by 32 random ``bits`` of each, so
    that the mean over the bits is the number itself.
    """
    if precision == "bfloat16":
        own = values.contiguous().view(torch.int32)
        return ((own + (bits >> 16).to(torch.int32)) >> 16).to(torch.int16)
    if precision == "float8":
        size = values.abs() * 2.0**-120
        code = (size.contiguous().view(torch.int32) + (bits >> 12).to(torch.int32)) >> 20
        code = code.clamp(max=0x7E)
        code = torch.where(torch.isnan(values), 0x7F, code)
        return torch.where(values < 0, code | 0x80, code).to(torch.uint8)
    return values.clone()
