"""``project``: the factor of a low-rank matrix plus a sparse one, from the factor before."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail._products import times_dense

__all__ = ["project"]

_SPARE = 10  # random columns beside Z
_SMALL = 1e-10  # eigenvalues of a Gram matrix, relative to the largest: below are rounding errors


def project(
    Z: np.ndarray,
    S: sp.csr_matrix,
    *,
    n_powers: int,
    rng: np.random.Generator,
    n_threads: int = 1,
) -> np.ndarray:
    """Project Z (n, c) to Z' (n, c) with ``Z'Z'^T`` near ``A = ZZ^T + S``, S symmetric; float32.

    Nearest would be the c largest positive eigenvalues of A with their eigenvectors. Those are
    sought within the columns of ``[G, SG, …, S^p G]``, where G holds Z, ten random columns, and
    random ones in place of any column of Z that is zero. That contains ``[Z, AZ, …, A^p Z]``,
    and the random columns see what is orthogonal to Z. For an orthonormal basis Q of it the matrix
    ``B = Q^T A Q`` is small; with its c largest positive eigenvalues, ``Z' = Q U_c Lambda_c^{1/2}``
    is the best factor of this subspace (Rayleigh and Ritz).

    Z' is never farther from A than Z: ``|A - QCQ^T|^2 = |A - QBQ^T|^2 + |B - C|^2`` for any C,
    Z' takes the C nearest to B among those of rank c without negative eigenvalues, and one of
    these is ``C = Q^T ZZ^T Q``, which is Z itself, since Q contains its columns. This holds for any
    p; more powers only bring Z' nearer to the exact answer.

    Work: ``p + 1`` products of S with c + 10 columns, and ``O(n (p c)^2)`` in dense products. If
    the subspace has no fewer dimensions than the whole, that is taken, and the answer is exact.

    >>> Z = np.array([[1], [0], [0]], np.float32)
    >>> S = sp.csr_matrix(np.diag([0, 4, -9]).astype(np.float32))
    >>> np.abs(project(Z, S, n_powers=1, rng=np.random.default_rng(0))).ravel()
    array([0., 2., 0.], dtype=float32)
    """
    n, c = Z.shape
    if (c + _SPARE) * (n_powers + 1) >= n:
        dense = Z.astype(np.float64)
        values, vectors = np.linalg.eigh(dense @ dense.T + S.toarray())
        return (vectors[:, ::-1] * _roots(values))[:, :c].astype(np.float32)  # type: ignore[no-any-return]
    start = rng.standard_normal((n, c + _SPARE), np.float32)
    used = Z.any(axis=0)
    start[:, : used.sum()] = Z[:, used]
    Q, image = _krylov(S, start, n_powers, n_threads)
    half, small = (Q.T @ Z).astype(np.float64), (Q.T @ image).astype(np.float64)
    values, vectors = np.linalg.eigh(half @ half.T + (small + small.T) / 2)
    return Q @ (vectors[:, ::-1] * _roots(values))[:, :c].astype(np.float32)  # type: ignore[no-any-return]


def _roots(values: np.ndarray) -> np.ndarray:
    """Largest first; a negative eigenvalue has no factor."""
    return np.sqrt(np.maximum(values[::-1], 0))  # type: ignore[no-any-return]


def _krylov(
    S: sp.csr_matrix, start: np.ndarray, n_powers: int, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return an orthonormal basis Q of ``[start, S start, …, S^p start]``, and ``S Q``."""
    blocks = [_orthonormal(start)]
    images = [times_dense(S, blocks[0], n_threads)]
    for _ in range(n_powers):
        # Twice: what is left of a column nearly within the basis is mostly its rounding error.
        block = _orthonormal(_without(images[-1], blocks))
        blocks.append(_orthonormal(_without(block, blocks)))
        images.append(times_dense(S, blocks[-1], n_threads))
    return np.hstack(blocks), np.hstack(images)


def _without(block: np.ndarray, bases: list[np.ndarray]) -> np.ndarray:
    for basis in bases:
        block = block - basis @ (basis.T @ block)
    return block


def _orthonormal(block: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns, of fewer where they depend on each other.

    Through the eigenvectors of the Gram matrix, in double precision: products instead of a QR.
    """
    double = block.astype(np.float64)
    gram = double.T @ double
    lengths = np.sqrt(np.diag(gram))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    values, vectors = np.linalg.eigh(scale[:, None] * gram * scale)
    kept = values > _SMALL * len(values)
    turn = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    return (double @ turn).astype(np.float32)  # type: ignore[no-any-return]
