"""Rules that turn several rankings into one score per label (XR-Transformer, section 4).

    mean       the members' scores, averaged
    rank       (m - rank) / m for ranks 0 … m - 1, averaged
    softmax    the row's scores through a softmax over what the member answered, averaged
    sigmoid    1 / (1 + exp(-score)), averaged

A label that a member did not answer counts 0; with "mean" and negative scores, where 0 would be
praise, it counts as that member's lowest answer of the row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longtail._native import core, n_threads
from longtail._validation import as_width
from longtail.answers.topk import TopK

__all__ = ["RULES", "combine"]

RULES = ("mean", "rank", "softmax", "sigmoid")  # in the order of the core


def combine(tops: Sequence[TopK], k: int, rule: str = "mean", *, n_jobs: int | None = None) -> TopK:
    """Return the k best labels of each row under the rule; ties to the smaller label id.

    Parameters
    ----------
    tops : sequence of TopK
        Answers of several rankers to the same rows.
    k : int
        Answers per row.
    rule : str, default="mean"
        How scores are combined, as in ``Ensemble``.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.

    >>> a = TopK([[0, 1]], [[0.9, 0.5]], n_labels=3)
    >>> b = TopK([[2, 1]], [[0.8, 0.6]], n_labels=3)
    >>> combine([a, b], k=2).indices
    array([[1, 0]], dtype=int32)
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got {rule!r}")
    if not tops:
        raise ValueError("there is nothing to combine")
    if len({len(top) for top in tops}) > 1 or len({top.n_labels for top in tops}) > 1:
        raise ValueError("rankings must be of the same rows and the same labels")
    ids = [np.ascontiguousarray(top.indices, np.int32) for top in tops]
    scores = [np.ascontiguousarray(top.scores, np.float32) for top in tops]
    k = as_width(k, tops[0].n_labels or 0)
    best, totals = core.combine_topk(ids, scores, RULES.index(rule), k, n_threads(n_jobs))
    return TopK._trusted(best, totals, tops[0].n_labels)
