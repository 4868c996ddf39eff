"""What every loss takes and returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_labels
from longtail.losses.weights import as_propensity

__all__ = ["LossValue", "Observed", "check_inputs"]


class LossValue(NamedTuple):
    """``value`` (n,): the loss of every row; ``gradient`` (n, L): its derivative by the scores."""

    value: np.ndarray
    gradient: np.ndarray


class Observed(NamedTuple):
    """``scores`` (n, L) float64; ``labels`` CSR (n, L); ``rows``, ``columns`` and ``values``: the
    places and values of the observed labels; ``inverse``: 1/p of each of them; ``propensity`` (L,).
    """

    scores: np.ndarray
    labels: sp.csr_matrix
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    inverse: np.ndarray
    propensity: np.ndarray


def check_inputs(scores: Any, Y: Any, propensity: Any) -> Observed:
    """Return scores, labels and propensities in one form; refuse what is not finite or does not
    fit.
    """
    try:
        s = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"scores must be an array of numbers, got {type(scores).__name__}"
        ) from None
    if s.ndim != 2:
        raise ValueError(f"scores must be (rows, labels), got {s.ndim} dimensions")
    if not np.isfinite(s).all():
        raise ValueError("scores must be finite")
    labels = as_labels(Y, n_labels=s.shape[1])
    if labels.shape[0] != s.shape[0]:
        raise ValueError(f"scores have {s.shape[0]} rows but Y has {labels.shape[0]}")
    p = as_propensity(propensity, s.shape[1])
    rows = np.repeat(np.arange(s.shape[0]), np.diff(labels.indptr))
    values = labels.data.astype(np.float64)
    return Observed(s, labels, rows, labels.indices, values, 1.0 / p[labels.indices], p)
