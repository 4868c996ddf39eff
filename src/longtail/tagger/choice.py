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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longtail.tagger.choose_terms import choose_terms
from longtail.tagger.given import GivenFeatures
from longtail.tagger.named_models import Limit, make_model

__all__ = ["Choice", "choose", "choose_model"]

FEW_LABELS = 1000
ONE_TREE_WORK = 2e10  # labels times texts, from which three trees would take many minutes


@dataclass(frozen=True)
class Choice:
    """A vectoriser and a model, not yet fitted, and why these, in one line.

    ``over``: what the features are, and of how many rows, for a model that was not chosen here.
    """

    vectorizer: Any
    model: Any
    why: str
    over: str


def choose_model(n: int, n_labels: int) -> tuple[str, str, str]:
    """Name of the model for n texts and this many labels, what it is, and why it."""
    if n_labels <= FEW_LABELS:
        return "one-vs-all", "one linear classifier per label", f"{n_labels:,} labels are few"
    if n * n_labels <= ONE_TREE_WORK:
        return "ensemble", "three trees of linear classifiers", f"{n_labels:,} labels are many"
    why = f"{n_labels:,} labels times so many rows are very many"
    return "xr-linear", "a tree of linear classifiers", why


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
    """Choose for these texts and this many labels.

    Parameters
    ----------
    texts : sequence of str
        Texts to choose by.
    n_labels : int
        Number of labels, L.
    features : bool, default=False
        Whether there are features in place of texts.
    vectorizer : Tfidf or mapping, default=None
        One that is given, or a mapping of those parameters of ``Tfidf`` that are.
    random_state : int, Generator or None, default=0
        Seed.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.
    memory_limit : int or str, default=None
        Bytes, or a text like "2GB".

    >>> choose(["a text that is long enough for its words"] * 1000, n_labels=50).why
    'one linear classifier per label, over words: 50 labels are few (1,000 texts of 9 words)'
    """
    n = len(texts)
    name, which, why = choose_model(n, n_labels)
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
