"""Madow's systematic sampling: sets of fixed size with given inclusion probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._validation import as_features, as_seed

__all__ = ["madow_sample"]


def madow_sample(marginals: Any, *, random_state: Any = 0) -> sp.csr_matrix:
    """Return a random set of labels for each row, in which label j is included with probability
    h_ij.

    Parameters
    ----------
    marginals : matrix of shape (n, L)
        H in [0, 1], dense or sparse; a row that sums to a whole number k yields sets of exactly
        k labels (otherwise of k or k + 1). One uniform number u a row decides: label j is taken
        when the running sum of h crosses one of u, u + 1, u + 2, ... at j.
    random_state : int, Generator or None, default=0
        Seed.

    Returns a binary CSR matrix of float32.

    >>> madow_sample([[0.5, 0.5, 1.0]] * 3, random_state=0).sum(axis=1).ravel()
    matrix([[2., 2., 2.]], dtype=float32)

    W. G. Madow, "On the theory of systematic sampling, II", Annals of Mathematical Statistics 20
    (1949).
    """
    matrix = as_features(marginals, name="marginals")
    h = matrix if sp.issparse(matrix) else sp.csr_matrix(matrix)
    if h.nnz and (h.data.min() < 0 or h.data.max() > 1 + 1e-6):
        raise ValueError("marginals must be probabilities in [0, 1]")
    u = np.random.default_rng(as_seed(random_state)).random(h.shape[0])
    lengths = np.diff(h.indptr)
    rows = np.repeat(np.arange(h.shape[0]), lengths)
    value = h.data.astype(np.float64)
    # Running sums row by row. Sums within rounding of a whole number are taken as that number, so
    # that a row of k/3 times 1/3 does not lose its last label once in a million draws.
    total = np.concatenate([[0.0], np.cumsum(value)])
    after = total[1:] - total[h.indptr[:-1]][rows]
    before = after - value
    after, before = _whole(after), _whole(before)
    crossed = np.ceil(after - u[rows]) - np.ceil(before - u[rows])
    taken = crossed >= 1
    indptr = np.concatenate([[0], np.cumsum(taken)])[h.indptr]
    ones = np.ones(int(taken.sum()), np.float32)
    return sp.csr_matrix((ones, h.indices[taken], indptr), shape=h.shape)


def _whole(x: np.ndarray) -> np.ndarray:
    near = np.round(x)
    return np.where(np.abs(x - near) < 1e-6, near, x)
