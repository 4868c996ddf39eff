"""Small problems, and search written out in NumPy, for the tests of linear models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import TopK


def make_rows(
    n: int = 120, d: int = 30, n_labels: int = 24, seed: int = 0, unlabelled: int = 0
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """``X`` (n, d) of unit rows and ``Y`` (n, n_labels); the first rows may have no label."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n, n_labels)) < 1.5 / n_labels
    Y[np.arange(n), rng.permutation(n) % n_labels] = True
    Y[:unlabelled] = False
    signal = (rng.random((n_labels, d)) < 0.2) * rng.random((n_labels, d))
    X = Y @ signal + (rng.random((n, d)) < 0.15) * rng.random((n, d))
    X[:, 0] += 0.1  # no row is empty
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return sp.csr_matrix(X.astype(np.float32)), sp.csr_matrix(Y.astype(np.float32))


def transform(name: str, z: np.ndarray) -> np.ndarray:
    """A post-processor on raw scores, as ``longtail.linear.search.post_processing`` defines it."""
    if name == "noop":
        return z
    if name.endswith("sigmoid"):
        value = -np.log1p(np.exp(-z))
    else:
        power = int(re.fullmatch(r"(?:log-)?l(\d+)-hinge", name)[1])  # type: ignore[index]
        value = -(np.maximum(0, 1 - z) ** power)
    return value if name.startswith("log-") else np.exp(value)


def all_scores(
    model: Any, X: Any, names: str | Sequence[str], beams: Sequence[int] | None = None
) -> np.ndarray:
    """Scores of every label (n, L) in float64: transforms multiplied along the path of each label.

    With ``beams``, only that many nodes go on after each level; labels below others get -inf.
    """
    depth = len(model.layers_)
    each = [names] * depth if isinstance(names, str) else names
    rows = sp.hstack([sp.csr_matrix(X), np.ones((X.shape[0], 1))]).astype(np.float64)
    path = np.ones((X.shape[0], 1))  # as a product or, for "log-", as the sum of logarithms
    order = np.zeros((X.shape[0], 1))  # its logarithm, which does not underflow
    alive = np.ones((X.shape[0], 1), bool)
    for t, (name, child_ptr) in enumerate(zip(each, model.tree_.child_ptr_, strict=True)):
        parent = np.repeat(np.arange(len(child_ptr) - 1), np.diff(child_ptr))
        z = (rows @ model.layers_[t].to_csr(X.shape[1]).T.astype(np.float64)).toarray()
        if name == "noop":
            path = order = z
        else:
            order = order[:, parent] + transform("log-" + name.removeprefix("log-"), z)
            path = path[:, parent] * transform(name, z)
            if name.startswith("log-"):
                path = order
        alive = alive[:, parent]
        if beams is not None and t < depth - 1:
            ranked = np.argsort(np.where(alive, -order, np.inf), axis=1, kind="stable")
            np.put_along_axis(alive, ranked[:, beams[t] :], False, axis=1)
    out = np.empty_like(path)
    out[:, model.label_of_leaf_] = np.where(alive, path, -np.inf)
    return out


def assert_ranks(top: TopK, scores: np.ndarray, tolerance: float = 1e-4) -> None:
    """``top`` is the best k of these scores; ids may differ only where scores are that close."""
    best = -np.sort(-scores, axis=1)[:, : top.k]
    np.testing.assert_allclose(top.scores[:, : best.shape[1]], best, rtol=tolerance, atol=1e-6)
    own = np.take_along_axis(scores, top.indices[:, : best.shape[1]].astype(np.int64), axis=1)
    np.testing.assert_allclose(own, best, rtol=tolerance, atol=1e-6)


def weights_by_label(model: Any) -> np.ndarray:
    """Weights of the last layer (L, d + 1), one row per label, the bias last."""
    weights = model.layers_[-1].to_csr(model.n_features_in_).toarray()
    out = np.empty_like(weights)
    out[model.label_of_leaf_] = weights
    return out
