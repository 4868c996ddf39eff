"""``NeighborCode``: a low-rank code that keeps the similarities of near rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import core, csr_args, n_threads
from longtail._products import pattern_products
from longtail._progress import Progress
from longtail._validation import as_k, as_labels, as_seed
from longtail.codes.low_rank_plus_sparse import project
from longtail.codes.svd_code import SVDCode, training_labels

__all__ = ["NeighborCode"]

_POWERS = 2  # of a projection that starts from the codes before
_DONE = 1e-10  # of the squared similarities: what is left of them is rounding errors


class NeighborCode(SVDCode):
    """Codes fitted to the similarities of nearest label neighbours only (DECLARE, appendix A; the
    embedding of SLEEC, Bhatia et al. 2015).

    Minimises ``f(M) = |P_Omega(YY^T) - P_Omega(M)|_F^2``, ``M = ZZ^T``, where Omega holds pairs
    (i, j) with i or j among the ``n_pairs`` rows most similar to the other under ``<y_i, y_j>``, by
    projected gradient steps ``M <- P_c(A)``, ``A = M + step P_Omega(YY^T - M)``. P_c keeps the c
    largest *positive* eigenvalues: a negative one has no factor Z. No n by n matrix is formed: A is
    low rank plus sparse, and ``project`` finds its eigenvectors within a small subspace that holds
    the codes before, in ``O(|Omega| c + n c^2)``.

    The objective does not rise: for ``step <= 1``,
    ``f(M') <= f(M) - |A - M|^2 / step + |A - M'|^2 / step``, with equality at ``M' = M``, since
    ``|P_Omega(M' - M)| <= |M' - M|``; and ``project`` never answers with an M' farther from A
    than M, whether or not its eigenvectors are exact.

    The start is the SVD code (``start="svd"``, which the paper proposes) or nothing
    (``start="zero"``, SLEEC's). ``label_vectors_`` is the least-squares map
    ``Y^T Z (Z^T Z)^{-1}``, which for the plain SVD is V.

    Parameters
    ----------
    n_pairs : int or None
        Neighbours of each row that Omega holds; None for all pairs of rows that share a label.
    n_steps, step : int; float
        Most gradient steps and their size; fitting ends sooner where nothing is left to fit, as it
        is where c is the rank of Y.
    start : str
        "svd" or "zero".
    n_components, recovery, n_neighbors, weights, n_probes, n_passes, random_state, n_jobs : object
        As in ``SVDCode``.

    After ``fit`` also ``objective_``: its value before the
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
        """Fit the codes of the training labels ``Y`` (n, L).

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        """
        Y = as_labels(Y)
        if self.start not in ("svd", "zero"):
            raise ValueError(f"start must be 'svd' or 'zero', got {self.start!r}")
        if not 0 < self.step <= 1:
            raise ValueError(f"step must lie in (0, 1], got {self.step}")
        steps = as_k(self.n_steps, "n_steps")
        svd = SVDCode(**{name: getattr(self, name) for name in SVDCode._defaults}).fit(Y)
        Y, threads = training_labels(svd), n_threads(self.n_jobs)
        wanted = self._similarities(Y)
        S, objective = wanted.copy(), []
        enough = _DONE * np.sum(np.square(wanted.data, dtype=np.float64))
        Z = svd.codes_ if self.start == "svd" else np.zeros_like(svd.codes_)
        rng = np.random.default_rng(as_seed(self.random_state))
        with Progress("NeighborCode") as progress:
            for i in range(steps + 1):
                progress(i, steps)
                S.data = wanted.data - pattern_products(wanted, Z, threads)
                objective.append(np.sum(np.square(S.data, dtype=np.float64)))
                if i == steps or objective[-1] <= enough:
                    break
                S.data *= np.float32(self.step)
                powers = _POWERS if Z.any() else as_k(self.n_passes, "n_passes")
                Z = project(Z, S, n_powers=powers, rng=rng, n_threads=threads)
        gram = np.asarray(Z.T, dtype=np.float64) @ Z
        vectors = (Y.T @ Z) @ np.linalg.pinv(gram)
        singular = np.sqrt(np.diag(gram)).astype(np.float32)
        self._set(Z, vectors.astype(np.float32), singular, svd.labels_)
        self.objective_ = np.array(objective)
        return self

    def _similarities(self, Y: sp.csr_matrix) -> sp.csr_matrix:
        """``P_Omega(YY^T)``; a pair without a common label is none."""
        n = Y.shape[0]
        if self.n_pairs is None or as_k(self.n_pairs, "n_pairs") >= n:
            out = sp.csr_matrix(Y @ Y.T)
        else:
            ids, keys = core.sparse_neighbors(
                csr_args(Y.tocsc().T),
                np.ones(n),
                csr_args(Y),
                self.n_pairs,
                n_threads(self.n_jobs),
            )
            row, slot = np.nonzero(ids >= 0)
            near = sp.csr_matrix((keys[row, slot], (row, ids[row, slot])), shape=(n, n))
            out = near.maximum(near.T).tocsr()
        out.sort_indices()
        return out

    def _get_state(self) -> Any:
        state = super()._get_state()
        state.arrays["objective"] = self.objective_
        return state

    def _set_state(self, state: Any) -> None:
        super()._set_state(state)
        self.objective_ = state.array("objective", np.float64, (None,))
