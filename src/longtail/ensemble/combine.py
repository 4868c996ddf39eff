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
    values = [_values(top, rule) / len(tops) for top in tops]
    lowest = [np.zeros(len(top)) for top in tops]
    if rule == "mean":
        lowest = [_lowest(top, value) for top, value in zip(tops, values, strict=True)]
    total = _sums(tops, values, lowest)
    return TopK.from_scores(total, k, n_jobs=n_jobs)


def _sums(
    tops: Sequence[TopK], values: Sequence[np.ndarray], lowest: Sequence[np.ndarray]
) -> sp.csr_matrix:
    """Sum over members of their value of a label, or of their lowest where they lack it, (n, L).

    Every answer of any member is stored, also where the sum is 0: it remains a candidate.
    """
    ids = np.hstack([top.indices for top in tops])
    order = np.argsort(ids, axis=1, kind="stable")
    ids = np.take_along_axis(ids, order, axis=1)
    rows, slots = np.nonzero(ids >= 0)
    ids = ids[rows, slots]
    first = np.ones(len(ids), bool)  # of a group of equal labels in a row
    first[1:] = (ids[1:] != ids[:-1]) | (rows[1:] != rows[:-1])
    group = np.cumsum(first) - 1
    rows, at = rows[first], (rows, order[rows, slots])
    low = np.hstack(
        [np.repeat(low[:, None], top.k, axis=1) for top, low in zip(tops, lowest, strict=True)]
    )
    total = np.bincount(group, np.hstack(values)[at])
    found = np.bincount(group, low[at])
    missing = np.where(np.bincount(group) < len(tops), np.sum(lowest, axis=0)[rows] - found, 0)
    limit = float(np.finfo(np.float32).max)
    indptr = np.searchsorted(rows, np.arange(len(tops[0]) + 1))
    width = tops[0].n_labels if tops[0].n_labels is not None else int(ids.max(initial=-1)) + 1
    return sp.csr_matrix(
        (np.clip(total + missing, -limit, limit).astype(np.float32), ids[first], indptr),
        shape=(len(tops[0]), width),
    )


def _lowest(top: TopK, values: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(top.indices >= 0, values, 0).min(axis=1, initial=0))


def _values(top: TopK, rule: str) -> np.ndarray:
    """What each answer is worth under the rule, float64; padding is worth 0."""
    answered = top.indices >= 0
    # An answered label may have the score -inf, the logarithm of a vanishing product.
    limit = float(np.finfo(np.float32).max)
    scores = np.clip(np.where(answered, top.scores, 0).astype(np.float64), -limit, limit)
    if rule == "mean":
        return scores
    if rule == "rank":
        ranks = np.arange(top.k, dtype=np.float64)
        return np.where(answered, (top.k - ranks) / max(top.k, 1), 0)
    if rule == "sigmoid":
        with np.errstate(over="ignore"):
            return np.where(answered, 1 / (1 + np.exp(-scores)), 0)
    weights = np.where(answered, np.exp(scores - scores[:, :1]), 0)
    sums = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(sums > 0, sums, 1))
