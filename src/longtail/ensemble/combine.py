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
import scipy.sparse as sp

from longtail.data.topk import TopK

__all__ = ["RULES", "combine"]

RULES = ("mean", "rank", "softmax", "sigmoid")


def combine(tops: Sequence[TopK], k: int, rule: str = "mean", *, n_jobs: int | None = None) -> TopK:
    """The k best labels of each row under the rule; ties to the smaller label id.

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
    total = None
    base = np.zeros(len(tops[0]), np.float32)
    for top in tops:
        values = _values(top, rule) / np.float32(len(tops))
        if rule == "mean":
            # Shifted by the lowest answer, so that what is missing adds that lowest answer.
            answered = top.indices >= 0
            lowest = np.where(answered, values, np.float32(0)).min(axis=1, initial=0)
            values = values - lowest[:, None]
            base += lowest
        member = _csr(top, values)
        total = member if total is None else total + member
    ranked = TopK.from_scores(sp.csr_matrix(total), k, n_jobs=n_jobs)
    if rule == "mean" and base.any():
        shifted = ranked.scores + base[:, None]
        return TopK._trusted(ranked.indices, shifted, ranked.n_labels)
    return ranked


def _values(top: TopK, rule: str) -> np.ndarray:
    answered = top.indices >= 0
    if rule == "mean":
        return np.where(answered, top.scores, np.float32(0))
    if rule == "rank":
        ranks = np.broadcast_to(np.arange(top.k, dtype=np.float32), top.scores.shape)
        return ((top.k - ranks) / top.k).astype(np.float32)
    if rule == "sigmoid":
        with np.errstate(over="ignore"):
            return (1 / (1 + np.exp(-top.scores.astype(np.float64)))).astype(np.float32)
    with np.errstate(invalid="ignore"):
        high = np.where(answered[:, :1], top.scores[:, :1], 0)
        weights = np.where(answered, np.exp((top.scores - high).astype(np.float64)), 0)
    sums = weights.sum(axis=1, keepdims=True)
    return (weights / np.where(sums > 0, sums, 1)).astype(np.float32)


def _csr(top: TopK, values: np.ndarray) -> sp.csr_matrix:
    """Answers with these values; explicit zeros stay, so that every answer remains a candidate."""
    answered = top.indices >= 0
    indptr = np.concatenate([[0], np.cumsum(answered.sum(axis=1), dtype=np.int64)])
    width = top.n_labels if top.n_labels is not None else int(top.indices.max(initial=-1)) + 1
    out = sp.csr_matrix((values[answered], top.indices[answered], indptr), (len(top), width))
    out.sort_indices()
    return out
