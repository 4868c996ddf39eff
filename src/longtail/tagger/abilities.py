"""What a model can do: asked of the model, and refused with a plain sentence if it cannot."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from longtail._protocols import gives_probabilities
from longtail.answers.topk import TopK

__all__ = ["allowed", "can_filter", "cannot", "searching", "without"]


def searching(model: Any) -> Callable[..., TopK]:
    """Return ``predict_proba_topk`` if the model has probabilities, else ``predict_topk``."""
    search: Callable[..., TopK] = model.predict_topk
    return model.predict_proba_topk if gives_probabilities(model) else search


def cannot(model: Any, what: str) -> TypeError:
    """Return the error for something that this kind of model does not support."""
    return TypeError(f"{type(model).__name__} does not support {what}")


def can_filter(model: Any) -> bool:
    """Return whether the model's search takes ``include`` and ``exclude``."""
    return {"include", "exclude"} <= set(inspect.signature(model.predict_topk).parameters)


def allowed(model: Any, options: Collection[str]) -> None:
    """Refuse options (include, exclude) that the model's search does not take."""
    if options and not can_filter(model):
        raise cannot(model, f"label filters ({', '.join(options)})")


def without(top: TopK, threshold: float) -> TopK:
    """Return answers whose score is at least ``threshold``; the others become padding at the
    end.
    """
    drop = (top.indices < 0) | (top.scores < threshold)
    order = np.argsort(drop, axis=1, kind="stable")
    indices = np.where(drop, -1, top.indices).astype(np.int32)
    scores = np.where(drop, -np.inf, top.scores).astype(np.float32)
    return TopK._trusted(
        np.take_along_axis(indices, order, axis=1),
        np.take_along_axis(scores, order, axis=1),
        top.n_labels,
    )
