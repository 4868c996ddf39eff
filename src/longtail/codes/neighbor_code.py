"""``NeighborCode``: a low-rank code that keeps the similarities of near rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args, n_threads
from longtail._validation import as_k, as_labels, as_seed
from longtail.codes.svd_code import SVDCode, training_labels

__all__ = ["NeighborCode"]

_CHUNK = 1 << 16


class NeighborCode(SVDCode):
    """Codes fitted to the similarities of nearest label neighbours only (DECLARE, appendix A; the
    embedding of SLEEC, Bhatia et al. 2015).

    Minimises ``|P_Omega(YY^T) - P_Omega(ZZ^T)|_F^2``, where Omega holds pairs (i, j) with i or j
    among the ``n_pairs`` rows most similar to the other under ``<y_i, y_j>``, by projected gradient
    steps ``M <- P_c(M + step P_Omega(YY^T - M))``. P_c keeps the c largest *positive* eigenvalues:
    a negative one has no factor Z. M = ZZ^T is never formed. What is projected is low rank plus
    sparse, so that a Lanczos solver needs only ``v -> Z(Z^T v) + step S v``, each in
    ``O(|Omega| + n c)``.

    The start is the SVD code (``start="svd"``, which the paper proposes) or nothing
    (``start="zero"``, SLEEC's). ``label_vectors_`` is the least-squares map
    ``Y^T Z (Z^T Z)^{-1}``, which for the plain SVD is V.

    Parameters
    ----------
    n_pairs : neighbours of each row that Omega holds; None for all pairs of rows that share a label
    n_steps, step : number and size of the gradient steps; the objective does not rise for step <= 1
    start : "svd" or "zero"

    The others are those of ``SVDCode``. After ``fit`` also ``objective_``: its value before the
    first step and after each.

    >>> code = NeighborCode(n_components=2, n_pairs=2).fit([[0, 1], [0], [2], [2, 1]])
    >>> bool(code.objective_[-1] <= code.objective_[0])
    True
    """

    type_tag = "neighbor-code"

    objective_: np.ndarray

    def __init__(
        self,
        *,
        n_components: int | None = None,
        n_pairs: int | None = 50,
        n_steps: int = 10,
        step: float = 1.0,
        start: str = "svd",
        recovery: str = "inner",
        n_neighbors: int = 25,
        weights: str = "similarity",
        n_probes: int | None = None,
        n_passes: int = 4,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_components=n_components,
            recovery=recovery,
            n_neighbors=n_neighbors,
            weights=weights,
            n_probes=n_probes,
            n_passes=n_passes,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.n_pairs = n_pairs
        self.n_steps = n_steps
        self.step = step
        self.start = start

    def fit(self, Y: Any) -> NeighborCode:
        """Fits the codes of the training labels ``Y`` (n, L)."""
        Y = as_labels(Y)
        if self.start not in ("svd", "zero"):
            raise ValueError(f"start must be 'svd' or 'zero', got {self.start!r}")
        if not 0 < self.step <= 1:
            raise ValueError(f"step must lie in (0, 1], got {self.step}")
        steps = as_k(self.n_steps, "n_steps")
        svd = SVDCode(**{name: getattr(self, name) for name in SVDCode._defaults}).fit(Y)
        Z = svd.codes_.astype(np.float64)
        if self.start == "zero":
            Z = np.zeros_like(Z)
        rows, columns = self._pairs(training_labels(svd))
        wanted = _inner_products(training_labels(svd), rows, columns)
        seed = as_seed(self.random_state)
        objective = []
        for _ in range(steps):
            gap = wanted - _code_products(Z, rows, columns)
            objective.append(float(gap @ gap))
            S = sp.csr_matrix((gap * self.step, (rows, columns)), shape=(len(Z), len(Z)))
            Z = _project(Z, S, seed)
        gap = wanted - _code_products(Z, rows, columns)
        objective.append(float(gap @ gap))
        gram = Z.T @ Z
        vectors = (training_labels(svd).T @ Z) @ np.linalg.pinv(gram)
        singular = np.sqrt(np.maximum(np.diag(gram), 0)).astype(np.float32)
        self._set(Z.astype(np.float32), vectors.astype(np.float32), singular, svd.labels_)
        self.objective_ = np.array(objective)
        return self

    def _pairs(self, Y: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Omega, symmetric: rows and columns of its entries."""
        n = Y.shape[0]
        most = n if self.n_pairs is None else min(n, as_k(self.n_pairs, "n_pairs"))
        ids, _ = core.sparse_neighbors(
            *csr_args(Y.tocsc().T), np.ones(n), *csr_args(Y), most, n_threads(self.n_jobs)
        )
        row, slot = np.nonzero(ids >= 0)
        pattern = sp.csr_matrix((np.ones(len(row), bool), (row, ids[row, slot])), shape=(n, n))
        both = (pattern + pattern.T).tocoo()
        return both.row, both.col

    def _get_state(self) -> Any:
        state = super()._get_state()
        state.arrays["objective"] = self.objective_
        return state

    def _set_state(self, state: Any) -> None:
        super()._set_state(state)
        self.objective_ = state.array("objective", np.float64, (None,))


def _project(Z: np.ndarray, S: sp.csr_matrix, seed: int) -> np.ndarray:
    """The factor of the best positive semidefinite approximation of ``ZZ^T + S`` of rank c."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    n, c = Z.shape
    if n <= max(2 * c, 64):  # too small for Lanczos
        values, vectors = np.linalg.eigh(Z @ Z.T + S.toarray())
        values, vectors = values[-c:], vectors[:, -c:]
    else:
        operator = LinearOperator((n, n), matvec=lambda v: Z @ (Z.T @ v) + S @ v, dtype=np.float64)
        start = np.random.default_rng(seed).standard_normal(n)
        values, vectors = eigsh(operator, k=c, which="LA", v0=start, tol=1e-6)
    return vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0))  # type: ignore[no-any-return]


def _inner_products(Y: sp.csr_matrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    out = np.empty(len(rows))
    for begin in range(0, len(rows), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        out[part] = np.asarray(Y[rows[part]].multiply(Y[columns[part]]).sum(axis=1)).ravel()
    return out


def _code_products(Z: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    out = np.empty(len(rows))
    for begin in range(0, len(rows), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        out[part] = np.einsum("ij,ij->i", Z[rows[part]], Z[columns[part]])
    return out
