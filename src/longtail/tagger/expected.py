"""How long the parts of an ensemble will take to train: said before they are."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._protocols import vectorizes
from longtail.base import unfitted
from longtail.data.text_rows import TextRows
from longtail.ensemble import Ensemble
from longtail.ensemble.learning import n_trainings
from longtail.ensemble.part import as_parts
from longtail.linear import OneVsAll, XRLinear

__all__ = ["expected_minutes", "in_words"]

_SAMPLE = 2000  # rows that a linear model is tried on


def expected_minutes(
    model: Ensemble, X: Any, Y: sp.csr_matrix, label_texts: Any = None, *, twice: bool = True
) -> dict[str, float]:
    """Return the minutes that each part will take, by its name.

    ``twice``: whether it is trained without some of the rows first, or several times where there
    are few (``n_trainings``).

    Both come from 2,000 of the rows: those of a linear model from a training on them, those of a
    text model from a few batches (``plan``); parts that take no time to speak of are left out.
    Rough: for the decision whether to wait.
    """
    n, trainings = Y.shape[0], n_trainings(Y.shape[0]) if twice else 1.0
    sample = np.sort(np.random.default_rng(0).permutation(n)[:_SAMPLE])
    few = X[sample] if hasattr(X, "shape") else TextRows(X)[sample]
    minutes: dict[str, float] = {}
    tried: dict[str, float] = {}
    for part in as_parts(model.models):
        ranker = part.ranker
        if hasattr(ranker, "plan"):
            texts = {} if label_texts is None else {"label_texts": label_texts}
            texts = texts if getattr(ranker, "reads_label_texts", False) else {}
            cost = ranker.plan(few, Y[sample], **texts)
            seconds = cost.total_seconds * cost.epochs * n / len(sample)
            minutes[part.title] = trainings * seconds / 60
            continue
        inner = list(ranker.models) if isinstance(ranker, Ensemble) else [ranker]
        if not isinstance(inner[0], (OneVsAll, XRLinear)):
            continue
        kind = type(inner[0]).__name__
        if kind not in tried:
            rows = few
            if vectorizes(part.representation):
                rows = unfitted(part.representation).fit_transform(few)
            began = time.perf_counter()
            unfitted(inner[0]).fit(rows, Y[sample])
            tried[kind] = (time.perf_counter() - began) * n / len(sample)
        extra = 1 + (Y.shape[1] / n if part.label_texts else 0)
        minutes[part.title] = trainings * tried[kind] * len(inner) * extra / 60
    return minutes


def in_words(minutes: dict[str, float]) -> str:
    """Return the plan in a line.

    >>> in_words({"trees": 0.21, "classifier": 1.6})
    'expected: trees 0.2 min, classifier 1.6 min; 1.8 minutes in all'
    """
    each = ", ".join(f"{name} {value:.1f} min" for name, value in minutes.items())
    total = sum(minutes.values())
    about = "less than a minute in all" if total < 1 else f"{total:.1f} minutes in all"
    return f"expected: {each}; {about}" if minutes else f"expected: {about}"
