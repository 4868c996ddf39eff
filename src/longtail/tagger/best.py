"""The parts of ``quality="best"``: every kind of model that the data and the machine allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtail._validation import as_seed
from longtail.baselines import NearestNeighbors
from longtail.ensemble import Ensemble, Part
from longtail.linear import XRLinear
from longtail.text import TextNetwork, UniDEC

__all__ = ["best_model", "best_parts"]

TREES, LABEL_TREES = 3, 2  # seeds averaged in the part over words, and in that with label texts
NEIGHBORS = 50


def best_parts(
    vectorizer: Any = None,
    *,
    label_texts: bool,
    encoder: Any = None,
    device: str | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    memory_limit: Any = None,
    onnx: Any = None,
) -> list[Part]:
    """Return the parts to fuse, not yet fitted.

    Trees over words; with ``label_texts`` trees that learn from those too; the vote of the nearest
    texts by words. With an ``encoder`` a fine-tuned classifier (``TextNetwork``); with both
    ``UniDEC``, and the vote of the nearest texts by its vectors, or else by the classifier's.

    ``vectorizer``: what makes features of texts; None where rows have features already.
    """
    seed = as_seed(random_state) % 2**31
    settings = {"n_jobs": n_jobs, "memory_limit": memory_limit}

    def trees(seeds: range) -> Ensemble:
        return Ensemble(models=[XRLinear(random_state=seed + i, **settings) for i in seeds])

    parts = [Part(vectorizer, trees(range(TREES)), name="trees")]
    if label_texts:
        more = trees(range(TREES, TREES + LABEL_TREES))
        parts.append(Part(vectorizer, more, label_texts=True, name="trees, label texts"))
    near = NearestNeighbors(n_neighbors=NEIGHBORS, n_jobs=n_jobs)
    parts.append(Part(vectorizer, near, name="neighbours by words"))
    if encoder is None:
        return parts
    text = {
        "encoder": encoder,
        "device": device or "auto",
        "random_state": random_state,
        "n_jobs": n_jobs,
        "onnx": onnx,
    }
    parts.append(Part(None, TextNetwork(**text), name="classifier"))
    if label_texts:
        parts.append(Part(None, UniDEC(**text), name="UniDEC"))
    vote = NearestNeighbors(n_neighbors=NEIGHBORS, weights="softmax", n_jobs=n_jobs)
    parts.append(Part(len(parts) - 1, vote, name="neighbours by vectors"))
    return parts


def best_model(parts: Sequence[Part], random_state: Any = 0, n_jobs: int | None = None) -> Ensemble:
    """Return the ensemble of parts under the rule "learned", not yet fitted."""
    seed = as_seed(random_state) % 2**31
    return Ensemble(models=list(parts), rule="learned", random_state=seed, n_jobs=n_jobs)
