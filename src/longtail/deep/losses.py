"""The losses of ``longtail.losses`` on torch tensors: the same names, the same numbers.

Every loss is called as ``loss(scores, Y, propensity)`` with ``scores`` (b, L), observed labels
``Y`` (b, L) dense with values in [0, 1], and ``propensity`` (L,), a tensor or None for complete
labels. It returns one number per row, (b,), through which gradients flow to the scores; the
reduction is yours. Weights are constants of the labels, worked out in double precision; the
arithmetic on scores is in their own type, on their device.

    ``loss = PALN()(network(x), y, p).mean(); loss.backward()``

Labels and propensities are not checked for their range here, as that would wait for the device:
check propensities once with ``longtail.losses.as_propensity``. See ``longtail.losses`` for
what each loss means and which to train with; this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from longtail import losses
from longtail.losses.normalized_weights import ESTIMATES
from longtail.losses.pick_labels import pick_one

__all__ = ["OVA", "OVAN", "PAL", "PALN", "POL", "Surrogate", "Unbiased"]

Binary = Callable[[Tensor], Tensor]


def _softplus(s: Tensor) -> Tensor:
    return torch.clamp(s, min=0) + torch.log1p(torch.exp(-torch.abs(s)))


# l(s, 1) and l(s, 0) by name, as in longtail.losses.binary
_BINARY: dict[str, tuple[Binary, Binary]] = {
    "logistic": (lambda s: _softplus(-s), _softplus),
    "squared_hinge": (lambda s: torch.relu(1 - s) ** 2, lambda s: torch.relu(1 + s) ** 2),
    "hinge": (lambda s: torch.relu(1 - s), lambda s: torch.relu(1 + s)),
    "squared_error": (lambda s: (s - 1) ** 2, lambda s: s**2),
}


@dataclass(frozen=True)
class OVA:
    """``sum_j (y_j/p_j) l1(s_j) + (1 - y_j/p_j) l0(s_j)``; see ``longtail.losses.OVA``."""

    base: str = "logistic"

    def __call__(self, scores: Tensor, Y: Tensor, propensity: Tensor | None = None) -> Tensor:
        part = _parts(scores, Y, propensity)
        return _sum_over_labels(self.base, scores, part, 1 - part)


@dataclass(frozen=True)
class OVAN:
    """``sum_j T_j l1(s_j) + (1 - T_j) l0(s_j)``; see ``longtail.losses.OVAN``."""

    base: str = "logistic"
    estimate: str = "bound"

    def __call__(self, scores: Tensor, Y: Tensor, propensity: Tensor | None = None) -> Tensor:
        share = _shares(scores, Y, propensity, self.estimate)
        return _sum_over_labels(self.base, scores, share, 1 - share)


@dataclass(frozen=True)
class Surrogate:
    """``sum_j w_j y_j l1(s_j) + (1 - y_j) l0(s_j)``; see ``longtail.losses.Surrogate``.

    Deep models want ``mean_one=True``: the positive weights of all labels rescaled to mean 1.
    """

    base: str = "logistic"
    balance: str | None = None
    counts: Any = None
    beta: float = 0.9
    mean_one: bool = False

    def __call__(self, scores: Tensor, Y: Tensor, propensity: Tensor | None = None) -> Tensor:
        _check(scores, Y, propensity)
        p = np.ones(Y.shape[1]) if propensity is None else propensity.double().cpu().numpy()
        weights = losses.surrogate_weights(
            p, self.counts, balance=self.balance, beta=self.beta, mean_one=self.mean_one
        )
        weight = torch.as_tensor(weights, dtype=scores.dtype, device=scores.device)
        y = Y.to(scores.dtype)
        return _sum_over_labels(self.base, scores, weight * y, 1 - y)


@dataclass(frozen=True)
class PAL:
    """``sum_j (y_j/p_j) l_j(s)``; see ``longtail.losses.PAL``."""

    base: str = "softmax"

    def __call__(self, scores: Tensor, Y: Tensor, propensity: Tensor | None = None) -> Tensor:
        return _sum_over_picks(self.base, scores, _parts(scores, Y, propensity))


@dataclass(frozen=True)
class PALN:
    """``sum_j T_j l_j(s)``; see ``longtail.losses.PALN``."""

    base: str = "softmax"
    estimate: str = "bound"

    def __call__(self, scores: Tensor, Y: Tensor, propensity: Tensor | None = None) -> Tensor:
        share = _shares(scores, Y, propensity, self.estimate)
        return _sum_over_picks(self.base, scores, share)


@dataclass(frozen=True)
class POL:
    """``|T| l_j(s)`` for one label drawn by its share; see ``longtail.losses.POL``.

    Draws the labels that ``longtail.losses.POL`` draws with the same ``random_state``; pass a NumPy
    Generator to draw anew in every call.
    """

    base: str = "softmax"
    random_state: Any = 0

    def __call__(self, scores: Tensor, Y: Tensor, propensity: Tensor | None = None) -> Tensor:
        share = _sparse(_shares(scores, Y, propensity, "bound", torch.float64))
        share.data = pick_one(share, self.random_state)
        return _sum_over_picks(self.base, scores, _dense(share, scores))


@dataclass(frozen=True)
class Unbiased:
    """Any ``loss(scores, Y) -> (b,)`` of complete labels; see ``longtail.losses.Unbiased``.

    Sums the same sub-sets of each row's labels, with the same weights, row by row.
    """

    loss: Callable[[Tensor, Tensor], Tensor]
    max_exact: int = 10
    n_draws: int = 32
    draw: str = "weight"
    random_state: Any = 0

    def __call__(self, scores: Tensor, Y: Tensor, propensity: Tensor | None = None) -> Tensor:
        _check(scores, Y, propensity)
        p = np.ones(Y.shape[1]) if propensity is None else propensity.double().cpu().numpy()
        numpy_twin = losses.Unbiased(
            self.loss, self.max_exact, self.n_draws, self.draw, self.random_state
        )
        values = []
        for row, subsets, weights in numpy_twin.terms(_sparse(Y), p):
            tiled = scores[row].expand(len(weights), -1)
            each = self.loss(tiled, _dense(subsets, scores))
            weight = torch.as_tensor(weights, dtype=each.dtype, device=each.device)
            values.append(weight @ each)
        return torch.stack(values) if values else scores.new_zeros(0)


def _check(scores: Tensor, Y: Tensor, propensity: Tensor | None) -> None:
    if scores.ndim != 2 or scores.shape != Y.shape:
        raise ValueError(
            f"scores and Y must both be (rows, labels), got {tuple(scores.shape)} and "
            f"{tuple(Y.shape)}"
        )
    if propensity is not None and propensity.shape != scores.shape[1:]:
        raise ValueError(
            f"propensity must hold one number for each of the {scores.shape[1]} labels, "
            f"got {tuple(propensity.shape)}"
        )


def _parts(
    scores: Tensor, Y: Tensor, propensity: Tensor | None, dtype: torch.dtype | None = None
) -> Tensor:
    """``y/p`` (b, L)."""
    _check(scores, Y, propensity)
    part = Y.double() if propensity is None else Y.double() / propensity.double().to(Y.device)
    return part.to(device=scores.device, dtype=dtype or scores.dtype)


def _shares(
    scores: Tensor,
    Y: Tensor,
    propensity: Tensor | None,
    estimate: str,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """``T`` (b, L), by ``longtail.losses.normalized_weights``' formulas."""
    if estimate not in ESTIMATES:
        raise ValueError(f"estimate must be one of {', '.join(ESTIMATES)}, got {estimate!r}")
    part = _parts(scores, Y, propensity, torch.float64)
    if estimate == "bound":
        share = part / (1 + (part.sum(dim=1, keepdim=True) - part))
        return share.to(dtype or scores.dtype)
    p = None if propensity is None else propensity.double().cpu().numpy()
    return _dense(losses.normalized_weights(_sparse(Y), p, estimate=estimate), scores)


def _sum_over_labels(base: str, scores: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    if base not in _BINARY:
        raise ValueError(f"base must be one of {', '.join(_BINARY)}, got {base!r}")
    one, zero = _BINARY[base]
    return (positive * one(scores) + negative * zero(scores)).sum(dim=1)


def _sum_over_picks(base: str, scores: Tensor, weights: Tensor) -> Tensor:
    """``sum_j w_j l_j(s)`` with l_j as in ``longtail.losses.multiclass``."""
    if base == "softmax":
        return -(weights * torch.log_softmax(scores, dim=1)).sum(dim=1)
    if base not in _BINARY:
        raise ValueError(f"base must be one of softmax, {', '.join(_BINARY)}, got {base!r}")
    total = weights.sum(dim=1, keepdim=True)
    return _sum_over_labels(base, scores, weights, total - weights)


def _sparse(dense: Tensor) -> sp.csr_matrix:
    return sp.csr_matrix(dense.detach().cpu().numpy())


def _dense(matrix: sp.csr_matrix, like: Tensor) -> Tensor:
    return torch.as_tensor(matrix.toarray(), dtype=like.dtype, device=like.device)
