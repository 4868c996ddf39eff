"""A sensible vectoriser and model from the data, and one line that says which and why.

- **Few labels**: one classifier per label against all texts (``OneVsAll``); a tree would hardly
  save anything.
- **Many labels**: three label trees of different seeds (``Ensemble`` of ``XRLinear``), which were
  better than one tree, and on average better than one-vs-all, at a fraction of its time.
- **Very many labels times texts**: one tree.

``longtail.tagger.choose_terms`` has the rules for the vectoriser, ``benchmarks/tagger/choices.py``
makes the measurements behind those above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longtail._validation import as_seed
from longtail.baselines import NearestNeighbors, Popularity
from longtail.ensemble import Ensemble
from longtail.linear import OneVsAll, XRLinear
from longtail.tagger.choose_terms import choose_terms
from longtail.tagger.given import GivenFeatures

__all__ = ["MODELS", "Choice", "choose", "make_model"]

FEW_LABELS = 1000
ONE_TREE_WORK = 2e10  # labels times texts, from which three trees would take many minutes


Limit = int | float | str | None


def _three_trees(seed: Any, jobs: int | None, limit: Limit) -> Ensemble:
    first = as_seed(seed) % 2**31
    return Ensemble(models=[_tree(first + i, jobs, limit) for i in range(3)])


def _tree(seed: Any, jobs: int | None, limit: Limit) -> XRLinear:
    return XRLinear(random_state=seed, n_jobs=jobs, memory_limit=limit)


def _one_vs_all(seed: Any, jobs: int | None, limit: Limit) -> OneVsAll:
    return OneVsAll(random_state=seed, n_jobs=jobs, memory_limit=limit)


#: Name → maker(random_state, n_jobs, memory_limit), for the command line and Tagger(model="…").
MODELS: dict[str, Callable[[Any, int | None, Limit], Any]] = {
    "xr-linear": _tree,
    "one-vs-all": _one_vs_all,
    "ensemble": _three_trees,
    "nearest-neighbors": lambda _, jobs, __: NearestNeighbors(n_jobs=jobs),
    "popularity": lambda _, __, ___: Popularity(),
}


def make_model(
    name: str, random_state: Any = 0, n_jobs: int | None = None, memory_limit: Limit = None
) -> Any:
    """The model of a name in ``MODELS``, not yet fitted.

    >>> make_model("xr-linear")
    XRLinear()
    """
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}: use auto, {', '.join(MODELS)}")
    return MODELS[name](random_state, n_jobs, memory_limit)


@dataclass(frozen=True)
class Choice:
    """A vectoriser and a model, not yet fitted, and why these, in one line.

    ``over``: what the features are, and of how many rows, for a model that was not chosen here.
    """

    vectorizer: Any
    model: Any
    why: str
    over: str


def choose(
    texts: Sequence[str],
    n_labels: int,
    *,
    features: bool = False,
    vectorizer: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    memory_limit: Limit = None,
) -> Choice:
    """Chooses for these texts and this many labels; ``features``: there are no texts.

    ``vectorizer``: one that is given, or a mapping of those parameters of ``Tfidf`` that are.

    >>> choose(["a text that is long enough for its words"] * 1000, n_labels=50).why
    'one linear classifier per label, over words: 50 labels are few (1,000 texts of 9 words)'
    """
    n = len(texts)
    if n_labels <= FEW_LABELS:
        name, which = "one-vs-all", "one linear classifier per label"
        why = f"{n_labels:,} labels are few"
    elif n * n_labels <= ONE_TREE_WORK:
        name, which = "ensemble", "three trees of linear classifiers"
        why = f"{n_labels:,} labels are many"
    else:
        name, which = "xr-linear", "a tree of linear classifiers"
        why = f"{n_labels:,} labels times so many rows are very many"
    model = make_model(name, random_state, n_jobs, memory_limit)
    if features:
        size = f"{n:,} rows of features"
        return Choice(GivenFeatures(), model, f"{which}: {why} ({size})", size)
    if vectorizer is None or isinstance(vectorizer, Mapping):
        terms = choose_terms(texts, vectorizer, n_jobs)
        vectorizer, over, size = terms.vectorizer, terms.over, terms.size
    else:
        over, size = f"the rows of {vectorizer!r}, as asked", f"{n:,} texts"
    return Choice(vectorizer, model, f"{which}, over {over}: {why} ({size})", f"{over} ({size})")
