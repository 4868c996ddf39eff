"""The weight of a label in normalised reductions, ``T_j = y_j / (1 + sum_{i != j} y_i)``.

A row with m relevant labels gives each 1/m, so that every row counts once. The sum is over complete
labels; two estimates of it from observed ones:

``"bound"``     ``(y_j/p_j) / (1 + sum_{i != j} y_i/p_i)``. Never negative, of moderate variance,
                and on average at least T_j (Jensen): a loss with non-negative terms is bounded from
                above.
``"unbiased"``  T_j on average, exactly, but of either sign, and its variance grows exponentially in
                the number of labels of a row once propensities fall below 1/2.

E. Schultheis and R. Babbar, "Unbiased loss functions for multilabel classification with missing
labels", 2021; the reductions: A. Menon et al., "Multilabel reductions: what is my loss
optimising?", NeurIPS 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_labels
from longtail.losses.weights import as_propensity

__all__ = ["ESTIMATES", "normalized_weights"]

ESTIMATES = ("bound", "unbiased")


def normalized_weights(Y: Any, propensity: Any = None, *, estimate: str = "bound") -> sp.csr_matrix:
    """Return ``T_j`` of every observed label, estimated from observed ones: CSR (n, L) float64.

    Parameters
    ----------
    Y : matrix of shape (n, L), or list of lists of int
        Observed labels.
    propensity : array of shape (L,), propensity model or None
        None for complete labels.
    estimate : str
        "bound" or "unbiased", see above; they agree where propensities are 1.

    Refuses ``"unbiased"`` for graded labels, values below 1 (``Unbiased`` estimates any loss).

    >>> normalized_weights([[0, 1], [2]], [0.5, 0.5, 0.5]).toarray().round(3)
    array([[0.667, 0.667, 0.   ],
           [0.   , 0.   , 2.   ]])
    >>> normalized_weights([[0, 1], [2]], [0.5, 0.5, 0.5], estimate="unbiased").toarray()
    array([[0., 0., 0.],
           [0., 0., 2.]])
    """
    if estimate not in ESTIMATES:
        raise ValueError(f"estimate must be one of {', '.join(ESTIMATES)}, got {estimate!r}")
    Y = as_labels(Y)
    p = as_propensity(propensity, Y.shape[1])
    inverse = (1.0 / p)[Y.indices]
    if estimate == "unbiased":
        values = _unbiased(Y, inverse)
    else:
        part = Y.data * inverse
        rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
        total = np.bincount(rows, part, minlength=Y.shape[0])
        values = part / (1.0 + (total[rows] - part))
    return sp.csr_matrix((values, Y.indices, Y.indptr), shape=Y.shape, copy=True)


def _unbiased(Y: sp.csr_matrix, inverse: np.ndarray) -> np.ndarray:
    """``1/p_j sum_{y' <= y} w(y') / (1 + |y'|)`` over sub-labels y' of the others, with
    ``w = prod 1/p_i`` for those kept times ``prod (1 - 1/p_i)`` for those dropped.

    Since ``1 / (1 + m) = int_0^1 t^m dt``, the sum of 2^(m-1) terms is the integral of the product
    of ``1 - 1/p_i + t/p_i``, a polynomial that Gauss-Legendre points integrate exactly.
    """
    if (Y.data != 1).any():
        raise ValueError(
            "the unbiased estimate needs plain labels, 0 or 1: for graded ones take the bound, "
            "or Unbiased(loss)"
        )
    values = np.array(inverse)
    sizes = np.diff(Y.indptr)
    for size in np.unique(sizes[sizes > 1]):
        at = Y.indptr[:-1][sizes == size][:, None] + np.arange(size)
        points, masses = np.polynomial.legendre.leggauss((int(size) + 1) // 2)
        own = inverse[at]  # (rows, size)
        # A point at a time: the factors of all labels, and the product of all but each one.
        total = np.zeros_like(own)
        for t, mass in zip((points + 1) / 2, masses / 2, strict=True):
            total += mass * _product_of_others(1.0 + (t - 1.0) * own)
        values[at] = own * total
    return values


def _product_of_others(factors: np.ndarray) -> np.ndarray:
    """Along rows, the product of all factors but one, without division."""
    before, after = np.ones_like(factors), np.ones_like(factors)
    np.cumprod(factors[:, :-1], axis=1, out=before[:, 1:])
    after[:, :-1] = np.cumprod(factors[:, :0:-1], axis=1)[:, ::-1]
    return np.asarray(before * after)
