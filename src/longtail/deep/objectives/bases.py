"""Binary losses on torch: value and slope for a positive and for a negative.

The same losses as in ``longtail.losses.binary``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["BASES", "Base", "sigmoid"]


def sigmoid(z: Tensor) -> Tensor:
    """Return ``1 / (1 + e^-z)``. torch's own rounds the ends of each thread's part differently."""
    return 1 / (1 + torch.exp(-z))


def _softplus(z: Tensor) -> Tensor:
    return torch.clamp(z, min=0) + torch.log1p(torch.exp(-torch.abs(z)))


@dataclass(frozen=True)
class Base:
    """``one`` and ``zero``: the losses l1 and l0 of a score; ``slope_one`` and ``slope_zero`` their
    derivatives; ``best``: the score that is best for labels of these shares, if it must be the same
    for every row; ``link``: see ``Objective``.
    """

    one: Callable[[Tensor], Tensor]
    zero: Callable[[Tensor], Tensor]
    slope_one: Callable[[Tensor], Tensor]
    slope_zero: Callable[[Tensor], Tensor]
    best: Callable[[np.ndarray], np.ndarray]
    link: str


def _log_odds(share: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(share) - np.log(np.maximum(1 - share, 1e-6)))


BASES = {
    "logistic": Base(
        one=lambda z: _softplus(-z),
        zero=_softplus,
        slope_one=lambda z: sigmoid(z) - 1,
        slope_zero=sigmoid,
        best=_log_odds,
        link="sigmoid",
    ),
    "squared_hinge": Base(
        one=lambda z: torch.relu(1 - z) ** 2,
        zero=lambda z: torch.relu(1 + z) ** 2,
        slope_one=lambda z: -2 * torch.relu(1 - z),
        slope_zero=lambda z: 2 * torch.relu(1 + z),
        best=lambda share: 2 * share - 1,
        link="hinge",
    ),
    "hinge": Base(
        one=lambda z: torch.relu(1 - z),
        zero=lambda z: torch.relu(1 + z),
        slope_one=lambda z: -(z < 1).to(z.dtype),
        slope_zero=lambda z: (z > -1).to(z.dtype),
        best=lambda share: np.where(share > 0.5, 1.0, -1.0),
        link="hinge",
    ),
    "squared_error": Base(
        one=lambda z: (z - 1) ** 2,
        zero=lambda z: z**2,
        slope_one=lambda z: 2 * (z - 1),
        slope_zero=lambda z: 2 * z,
        best=lambda share: share,
        link="identity",
    ),
}
