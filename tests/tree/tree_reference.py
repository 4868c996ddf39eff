"""Balanced 2-means and label features in plain NumPy, from the same random stream as the kernel."""

import numpy as np
import scipy.sparse as sp

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


def _mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def seeds(seed, begin, end):
    """Two distinct members of the split (begin, end)."""
    state = _mix(_mix(_mix((seed + _STEP) & _MASK) ^ (begin + _STEP)) ^ (end + 2 * _STEP & _MASK))
    draws = []
    for n in (end - begin, end - begin - 1):
        state = (state + _STEP) & _MASK
        draws.append(((_mix(state) >> 32) * n) >> 32)
    a, b = draws
    return a, b + (b >= a)


def split(rows, a, b, n_left, max_iter=20, spherical=True):
    """Boolean array: which rows go left."""

    def centroid(members):
        total = members.sum(axis=0)
        scale = np.linalg.norm(total) if spherical else len(members)
        return total / scale if scale > 0 else total

    direction, left = rows[b] - rows[a], None
    for _ in range(max_iter):
        order = np.argsort(rows @ direction, kind="stable")
        now = np.zeros(len(rows), dtype=bool)
        now[order[:n_left]] = True
        if left is not None and np.array_equal(now, left):
            break
        left = now
        direction = centroid(rows[~left]) - centroid(rows[left])
    return left


def cluster_order(rows, shape, seed, **options):
    rows = rows.toarray() if sp.issparse(rows) else rows
    rows = rows.astype(np.float64)
    order = np.arange(len(rows))
    for begin, cut, end in shape.splits.tolist():
        members = order[begin:end]
        left = split(rows[members], *seeds(seed, begin, end), cut - begin, **options)
        order[begin:end] = np.concatenate([members[left], members[~left]])
    return order


def pifa(X, Y, normalize_label_rows):
    """Three lines: scale rows of Y, multiply, scale rows of Z."""
    Y = unit(sp.csr_matrix(Y)) if normalize_label_rows else sp.csr_matrix(Y)
    return unit(sp.csr_matrix(Y.T @ sp.csr_matrix(X))).toarray()


def unit(matrix):
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1), dtype=np.float64)).ravel()
    return sp.diags(1 / np.where(norms > 0, norms, 1)) @ matrix


def random_rows(n, d, density, seed, dense=False):
    """Unit rows, CSR float32 (some empty) or dense."""
    rng = np.random.default_rng(seed)
    matrix = sp.random(n, d, density, format="csr", random_state=rng, dtype=np.float64)
    matrix = unit(matrix).tocsr().astype(np.float32)
    return matrix.toarray() if dense else matrix
