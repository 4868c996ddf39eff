"""Rows that a model keeps of its training, so that labels can be added without the data.

New labels need old rows as negatives (``add_labels``). A model fitted with ``keep_rows=n`` holds
``n`` of its rows with their labels, drawn at random, and saves them: about 8 bytes for every entry
of their features. Off by default, for the size and because rows may be private.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._csr import csr
from longtail._native import csr_args
from longtail._validation import as_features, as_labels, as_seed, n_instances

__all__ = ["KeptRows", "draw_rows"]


class KeptRows:
    """Features (n, d), as they were given, and labels (n, L) of some training rows."""

    def __init__(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        self.X, self.Y = X, Y

    def with_labels(self, n_labels: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Return ``(X, Y)``; labels that came after training are none of these rows'."""
        Y = self.Y
        return self.X, csr(Y.indptr, Y.indices, Y.data, n_labels)

    def without(self, gone: np.ndarray) -> KeptRows:
        """Return the same rows once the labels marked in ``gone`` (L,) are taken out of the
        model.
        """
        _, Y = self.with_labels(len(gone))
        return KeptRows(self.X, Y[:, np.flatnonzero(~gone)].tocsr())

    def put_state(self, state: persist.State) -> None:
        state.meta["kept_rows"] = int(self.X.shape[0])
        state.meta["kept_labels"] = int(self.Y.shape[1])
        state.put_csr("kept_X", csr_args(self.X))
        state.put_csr("kept_Y", csr_args(self.Y))

    @classmethod
    def from_state(cls, state: persist.State, n_features: int) -> KeptRows | None:
        if "kept_rows" not in state.meta:
            return None
        n = state.count("kept_rows")
        matrices = []
        for name, width in (("kept_X", n_features), ("kept_Y", state.count("kept_labels"))):
            indptr, indices, values, _ = state.csr(name, n, width)
            matrices.append(csr(indptr, indices, values, width))
        return cls(as_features(matrices[0]), as_labels(matrices[1]))


def draw_rows(X: Any, Y: Any, n: int, random_state: Any, n_label_rows: int = 0) -> KeptRows:
    """Draw ``n`` rows at random, or all if there are fewer; none of the last ``n_label_rows``."""
    X, Y = as_features(X), as_labels(Y)
    rng = np.random.default_rng(as_seed(random_state))
    rows = np.sort(rng.permutation(n_instances(X.shape[0], n_label_rows))[:n])
    return KeptRows(sp.csr_matrix(X[rows]), Y[rows])
