"""Linear decisions against NumPy: any width, ties, labels that are no candidates, counts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longtail._native import core, csr_args
from longtail.decide.candidates import as_candidates
from longtail.decide.rule import decide_linear


def reference(eta: np.ndarray, stored: np.ndarray, a, b, k: int, exactly: bool, only: bool):
    """Larger gain, then more probable, then smaller id."""
    out = np.full((len(eta), k), -1)
    for i, row in enumerate(eta):
        gain = a * row.astype(np.float64) + b
        usable = stored[i] if only or not exactly else np.ones_like(stored[i])
        usable = usable & (exactly | (gain > 0))
        ids = np.flatnonzero(usable)
        order = ids[np.lexsort((ids, -row[ids], -gain[ids]))][:k]
        out[i, : len(order)] = order
    return out


@pytest.mark.parametrize("width", [3, 8, 17, 100, 300, 600])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_against_numpy(width: int, k: int) -> None:
    rng = np.random.default_rng(width * 100 + k)
    n_labels = 700
    eta = np.zeros((12, n_labels), np.float32)
    stored = np.zeros(eta.shape, bool)
    for i in range(len(eta)):
        own = rng.permutation(n_labels)[:width]
        eta[i, own] = np.round(rng.random(width), 1) + 0.05  # ties among them
        stored[i, own] = True
    eta = np.minimum(eta, 1)
    rows, columns = np.nonzero(stored)
    matrix = sp.csr_matrix((eta[rows, columns], (rows, columns)), shape=eta.shape)
    a = np.round(rng.random(n_labels) * 2, 1)
    b = np.round(-rng.random(n_labels), 1)
    truth = sp.csr_matrix((rng.random(eta.shape) < 0.2).astype(np.float32))
    found = as_candidates(matrix)
    for exactly in (True, False):
        for only in (True, False):
            wanted = reference(eta, stored, a, b, k, exactly, only)
            ids, _ = decide_linear(found, a, b, k, exactly=exactly, candidates_only=only)
            np.testing.assert_array_equal(ids, wanted)
            rule = found.args, a[None], b[None], found.allowed, k, exactly, only
            t, q = core.count_linear(*rule, csr_args(truth), 1, None)
            named, at = wanted >= 0, np.nonzero(wanted >= 0)[0]
            np.testing.assert_array_equal(q, np.bincount(wanted[named], minlength=n_labels))
            hits = np.asarray(truth[at, wanted[named]]).ravel()
            np.testing.assert_array_equal(t, np.bincount(wanted[named], hits, n_labels))
