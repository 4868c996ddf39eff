"""``quality="best"``: every kind of model that the data and the machine allow, fused.

- **Trees over words**, and, where labels have texts, trees that learn from those too: one
  classifier per label instead where labels are few, one tree where there are very many.
- **The vote of the nearest texts** by words, unless there are very many texts.
- With an **encoder**, a fine-tuned classifier (``TextNetwork``); where labels have texts,
  ``UniDEC``; and the vote of the nearest texts by the vectors of the last of them.

``longtail.ensemble`` fuses them. ``benchmarks/text/best.py`` makes the measurements behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from longtail._validation import as_seed
from longtail.base import Ranker
from longtail.baselines import NearestNeighbors
from longtail.ensemble import Ensemble, Part
from longtail.exceptions import MissingDependencyError
from longtail.linear import OneVsAll, XRLinear
from longtail.tagger.choice import FEW_LABELS, ONE_TREE_WORK
from longtail.text import TextNetwork, UniDEC

__all__ = ["best_model", "best_parts", "check_quality"]

QUALITIES = ("fast", "best")
TREES, LABEL_TREES = 3, 2  # seeds averaged in the part over words, and in that with label texts
NEIGHBORS = 50
MANY_TEXTS = 500_000  # among which looking for neighbours takes too long


def best_parts(
    vectorizer: Any = None,
    *,
    n_texts: int,
    n_labels: int,
    label_texts: bool,
    encoder: Any = None,
    device: str | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    memory_limit: Any = None,
    onnx: Any = None,
) -> list[Part]:
    """Return the parts to fuse, not yet fitted.

    ``vectorizer``: what makes features of texts; None where rows have features already.
    ``label_texts``: whether labels have texts. ``encoder``, ``device``, ``onnx`` as in
    ``TextNetwork``.

    >>> [p.title for p in best_parts(n_texts=9000, n_labels=5000, label_texts=True)]
    ['trees', 'trees, label texts', 'neighbours by words']
    """
    seed = as_seed(random_state) % 2**31
    settings = {"n_jobs": n_jobs, "memory_limit": memory_limit}
    few, many = n_labels <= FEW_LABELS, n_texts * n_labels > ONE_TREE_WORK

    def linear(seeds: range) -> Ranker:
        if few:
            return OneVsAll(random_state=seed, **settings)
        trees = [XRLinear(random_state=seed + i, **settings) for i in seeds]
        return trees[0] if many else Ensemble(models=trees)

    name = "one per label" if few else "trees"
    parts = [Part(vectorizer, linear(range(TREES)), name=name)]
    if label_texts:
        more = linear(range(TREES, TREES + LABEL_TREES))
        parts.append(Part(vectorizer, more, label_texts=True, name=f"{name}, label texts"))
    if n_texts <= MANY_TEXTS:
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
    if n_texts <= MANY_TEXTS:
        vote = NearestNeighbors(n_neighbors=NEIGHBORS, weights="softmax", n_jobs=n_jobs)
        parts.append(Part(len(parts) - 1, vote, name="neighbours by vectors"))
    return parts


def best_model(parts: Sequence[Part], random_state: Any = 0, n_jobs: int | None = None) -> Ensemble:
    """Return the ensemble of parts under the rule "learned", not yet fitted."""
    seed = as_seed(random_state) % 2**31
    return Ensemble(models=list(parts), rule="learned", random_state=seed, n_jobs=n_jobs)


def check_quality(tagger: Any) -> None:
    """Raise ValueError for a quality that is none, and for settings that do not go with it."""
    if tagger.quality not in QUALITIES:
        raise ValueError(f"quality must be one of {', '.join(QUALITIES)}, got {tagger.quality!r}")
    if tagger.quality == "fast":
        for name in ("encoder", "device"):
            if getattr(tagger, name) is not None:
                raise ValueError(
                    f'{name} goes with quality="best"; a model of your own takes it itself, as in '
                    f"model=TextNetwork({name}=…)"
                )
        return
    if tagger.model is not None and tagger.model != "auto":
        raise ValueError(
            f'quality="best" chooses the models itself: leave out model, got {tagger.model!r}'
        )
    if tagger.learn_label_texts:
        raise ValueError('quality="best" learns from label texts as it is: no learn_label_texts')
    if tagger.encoder is not None and find_spec("torch") is None:
        raise MissingDependencyError("torch", "text", "training with an encoder")
