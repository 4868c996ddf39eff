"""A sensible vectoriser and model from the data, and one line that says which and why.

- **Few labels**: one classifier per label against all texts (``OneVsAll``); a tree would hardly
  save anything.
- **Many labels**: three label trees of different seeds (``Ensemble`` of ``XRLinear``), which were
  better than one tree, and on average better than one-vs-all, at a fraction of its time.
- **Very many labels times texts**: one tree.
- **Short texts** (codes, titles, queries of a few words): words and pairs of words; pairs cost
  much and bring nothing where texts are long.
- **Few texts**: words of a single text are kept, otherwise those of at least two.

``benchmarks/tagger/choices.py`` makes the measurements behind these rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.features import Tfidf
from longtail.tagger.given import GivenFeatures
from longtail.tagger.named_models import Limit, make_model

__all__ = ["Choice", "choose", "choose_model"]

FEW_LABELS = 1000
ONE_TREE_WORK = 2e10  # labels times texts, from which three trees would take many minutes
SHORT_TEXT = 8.0  # words, on average
FEW_TEXTS = 200  # below this, words of a single text are kept too
_SAMPLE = 2000  # texts looked at to tell how long they are


@dataclass(frozen=True)
class Choice:
    """A vectoriser and a model, not yet fitted, and why these, in one line."""

    vectorizer: Any
    model: Any
    why: str


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
    random_state: Any = 0,
    n_jobs: int | None = None,
    memory_limit: Limit = None,
) -> Choice:
    """Chooses for these texts and this many labels; ``features``: there are no texts.

    >>> choose(["a text that is long enough for its words"] * 1000, n_labels=50).why
    'one linear classifier per label, over words: 50 labels are few (1,000 texts of 9 words)'
    """
    n = len(texts)
    name, which, why = choose_model(n, n_labels)
    model = make_model(name, random_state, n_jobs, memory_limit)
    if features:
        return Choice(GivenFeatures(), model, f"{which}: {why} ({n:,} rows of features)")
    vectorizer = Tfidf(min_df=1 if n < FEW_TEXTS else 2, n_jobs=n_jobs)
    length = words_per_text(texts)
    over = "words"
    if length <= SHORT_TEXT and n >= FEW_TEXTS:
        vectorizer.set_params(ngram_range=(1, 2))
        over = "words and pairs of words"
    size = f"{n:,} texts of {length:.0f} words"
    return Choice(vectorizer, model, f"{which}, over {over}: {why} ({size})")


def words_per_text(texts: Sequence[str]) -> float:
    """Mean number of words of up to 2,000 texts spread over all of them."""
    step = max(1, len(texts) // _SAMPLE)
    counts = [len(text.split()) for text in texts[::step] if isinstance(text, str)]
    return float(np.mean(counts)) if counts else 0.0
