"""A sensible vectoriser and model from the data, and one line that says which and why.

What decides, with the measurements behind it (``benchmarks/tagger_choices.py``):

- **Labels times texts.** One classifier per label against all texts is the most accurate linear
  model and costs in proportion to both; up to ``ONE_VS_ALL_WORK`` that is seconds. Above, a label
  tree (``XRLinear``) trains in a fraction of the time.
- **Length of the texts.** Words serve texts of any length; for a few words each (codes, titles,
  queries), where a word is seldom repeated, parts of words are worth their cost.
- **Number of texts.** Words of a single text teach nothing, unless there are few texts in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.baselines import NearestNeighbors, Popularity
from longtail.ensemble import Ensemble
from longtail.features import Tfidf
from longtail.linear import OneVsAll, XRLinear

__all__ = ["MODELS", "Choice", "choose", "make_model"]

ONE_VS_ALL_WORK = 2e8  # labels times texts: about ten seconds of one core
FEW_TEXTS = 200  # below this, words of a single text are kept too
_SAMPLE = 2000  # texts looked at to tell how long they are


def _three_trees(random_state: Any, n_jobs: int | None) -> Ensemble:
    trees = [XRLinear(random_state=seed, n_jobs=n_jobs) for seed in range(3)]
    return Ensemble(models=trees)


# Name → maker(random_state, n_jobs), for the command line and for Tagger(model="…").
MODELS: dict[str, Callable[[Any, int | None], Any]] = {
    "xr-linear": lambda seed, jobs: XRLinear(random_state=seed, n_jobs=jobs),
    "one-vs-all": lambda seed, jobs: OneVsAll(random_state=seed, n_jobs=jobs),
    "plt": lambda seed, jobs: XRLinear(
        loss="logistic", post_processor="sigmoid", random_state=seed, n_jobs=jobs
    ),
    "ensemble": _three_trees,
    "nearest-neighbors": lambda _, jobs: NearestNeighbors(n_jobs=jobs),
    "popularity": lambda _, __: Popularity(),
}


def make_model(name: str, random_state: Any = 0, n_jobs: int | None = None) -> Any:
    """The model of a name in ``MODELS``, not yet fitted.

    >>> make_model("xr-linear")
    XRLinear()
    """
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}: use auto, {', '.join(MODELS)}")
    return MODELS[name](random_state, n_jobs)


@dataclass(frozen=True)
class Choice:
    """A vectoriser and a model, not yet fitted, and why these, in one line."""

    vectorizer: Any
    model: Any
    why: str


def choose(
    texts: Sequence[str], n_labels: int, *, random_state: Any = 0, n_jobs: int | None = None
) -> Choice:
    """Chooses for these texts and this many labels.

    >>> choose(["a text of some words"] * 1000, n_labels=50).why
    'one classifier per label (1,000 texts x 50 labels is little work) over words'
    """
    n = len(texts)
    model: Any
    if n * n_labels <= ONE_VS_ALL_WORK:
        model = OneVsAll(random_state=random_state, n_jobs=n_jobs)
        which = f"one classifier per label ({n:,} texts x {n_labels:,} labels is little work)"
    else:
        model = XRLinear(random_state=random_state, n_jobs=n_jobs)
        which = f"a tree of linear classifiers ({n:,} texts x {n_labels:,} labels is much work)"
    vectorizer, over = _vectorizer(texts, n_jobs)
    return Choice(vectorizer, model, f"{which} over {over}")


def _vectorizer(texts: Sequence[str], n_jobs: int | None) -> tuple[Tfidf, str]:
    few = len(texts) < FEW_TEXTS
    return Tfidf(min_df=1 if few else 2, n_jobs=n_jobs), "words"


def words_per_text(texts: Sequence[str]) -> float:
    """Mean number of words of up to 2,000 texts spread over all of them."""
    step = max(1, len(texts) // _SAMPLE)
    counts = [len(text.split()) for text in texts[::step]]
    return float(np.mean(counts)) if counts else 0.0
