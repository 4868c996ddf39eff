"""``compact``: a smaller copy of a linear model, and what it costs in accuracy.

Weights are rounded (``linear.search.layer``: bf16, or int8 in steps of each label's own size).
Where that is not enough, the smallest of the last level are dropped, which holds nearly all of
them: positive ones up to twice the size of negative ones. Negative weights are fewer, and they are
what keeps rare labels from being answered where they do not belong: dropped by size alone, fewer
weights cost more accuracy.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from longtail._native import n_threads
from longtail._validation import as_features, as_labels
from longtail.linear.ranker import LinearRanker
from longtail.linear.search.layer import PRECISIONS, Layer
from longtail.metrics import precision_at_k

__all__ = ["compact"]

Model = TypeVar("Model", bound=LinearRanker)


def compact(
    model: Model,
    *,
    target_mb: float | None = None,
    precision: str = "int8",
    X: Any = None,
    Y: Any = None,
) -> Model:
    """Return a copy of a fitted ``OneVsAll`` or ``XRLinear`` in fewer bytes.

    Parameters
    ----------
    model : OneVsAll or XRLinear
        A fitted model, which stays as it is.
    target_mb : float or None
        Largest size of the arrays, in megabytes (10^6 bytes); None drops no weights.
    precision : str
        "int8", "bf16" or "float32" (then only dropping makes it smaller).
    X, Y : matrices of shape (n, d) and (n, L)
        Validation rows. If given, P@1, P@3 and P@5 of both models are measured on them.

    The copy's ``compaction_`` says what was done: precision, megabytes before and after, the cut
    below which weights went (positive ones below twice that), and P@k. It is saved with the model.
    A target that not even the biases fit is refused.

    >>> import longtail as lt
    >>> data = lt.data.make_longtail(n=600, d=100, L=30, n_test=300, random_state=0)
    >>> model = lt.OneVsAll().fit(data.train.X, data.train.Y)
    >>> small = lt.linear.compact(model, X=data.test.X, Y=data.test.Y)
    >>> small.nbytes < 0.6 * model.nbytes
    True
    """
    if not isinstance(model, LinearRanker):
        raise TypeError(f"compact takes a linear model, got {type(model).__name__}")
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    model._check_fitted()
    if (X is None) != (Y is None):
        raise ValueError("give validation rows as X and Y, or neither")
    layers = [layer.with_precision(precision) for layer in model.layers_]
    cut = 0.0
    if target_mb is not None:
        if not target_mb > 0:
            raise ValueError(f"target_mb must be positive, got {target_mb}")
        layers, cut = _fit_into(model, layers, int(target_mb * 1e6), precision)
    small = copy.copy(model)
    small._set_layers(layers, model.label_of_leaf_)
    done: dict[str, Any] = {
        "precision": precision,
        "mb": round(small.nbytes / 1e6, 3),
        "mb_before": round(model.nbytes / 1e6, 3),
        "cut": cut,
    }
    if X is not None:
        X = as_features(X, n_features=model.n_features_in_)
        Y = as_labels(Y, n_rows=X.shape[0], n_labels=model.n_labels_)
        done["precision_at"] = {
            name: {str(k): float(precision_at_k(Y, top, k=k)) for k in (1, 3, 5)}
            for name, top in (
                ("before", model.predict_topk(X, k=5)),
                ("after", small.predict_topk(X, k=5)),
            )
        }
    small.compaction_ = done
    return small


def _fit_into(
    model: LinearRanker, layers: list[Layer], most: int, precision: str
) -> tuple[list[Layer], float]:
    """Drop the smallest weights of the last level until all arrays have ``most`` bytes."""

    def size(candidate: list[Layer]) -> int:
        return sum(layer.nbytes for layer in candidate) + model.label_of_leaf_.nbytes

    if size(layers) <= most:
        return layers, 0.0
    threads = n_threads(model.n_jobs)
    last = model.layers_[-1]
    weights = last.weights(model.n_features_in_)
    importance = _importance(weights.data)
    magnitudes = np.sort(importance)
    # Bytes fall with the number of weights, if not in proportion: halve until one more is too many.
    low, high = 0, len(magnitudes)  # weights dropped: too few, enough
    best: tuple[list[Layer], float] | None = None
    while high - low > max(1, len(magnitudes) // 500):
        middle = (low + high) // 2
        cut = float(magnitudes[middle])
        candidate = [*layers[:-1], _pruned(last, weights, importance > cut, threads, precision)]
        if size(candidate) <= most:
            best, high = (candidate, cut), middle
        else:
            low = middle
    if best is None:
        empty = _pruned(last, weights, importance < 0, threads, precision)
        raise ValueError(
            f"{most / 1e6:g} MB are too few: without any weight of the labels the model still has "
            f"{size([*layers[:-1], empty]) / 1e6:.2f}"
        )
    return best


def _importance(weights: np.ndarray) -> np.ndarray:
    return np.where(weights > 0, 0.5 * weights, -weights)


def _pruned(
    layer: Layer, weights: sp.csr_matrix, keep: np.ndarray, threads: int, precision: str
) -> Layer:
    kept = np.concatenate([[0], np.cumsum(keep)])[weights.indptr]
    shape = weights.shape
    smaller = sp.csr_matrix((weights.data[keep], weights.indices[keep], kept), shape=shape)
    built = Layer.from_csr(smaller, layer.arrays["bias"], layer.child_ptr, threads)
    return built.with_precision(precision)
