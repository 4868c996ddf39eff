"""``widened``: answers with further ones behind them."""

from __future__ import annotations

import numpy as np

from longtail.answers.topk import TopK

__all__ = ["widened"]


def widened(top: TopK, more: TopK) -> TopK:
    """Return ``top``, whose free places at the end of rows are taken by answers of ``more``.

    Both have k places. Labels that ``top`` has are not repeated; the others keep their order, and
    their scores lie below the lowest of the row and above 0: probabilities, as those of ``top``.

    >>> top = TopK([[3, -1, -1]], [[0.5, -np.inf, -np.inf]], n_labels=4)
    >>> wide = widened(top, TopK([[3, 0, 2]], [[0.9, 0.8, 0.7]], n_labels=4))
    >>> wide.indices, wide.scores.round(1)
    (array([[3, 0, 2]], dtype=int32), array([[0.5, 0.4, 0.3]], dtype=float32))
    """
    ids, scores = top.indices.copy(), top.scores.copy()
    n_labels = top.n_labels or 1
    for row in np.flatnonzero((ids < 0).any(axis=1)):
        have = int((ids[row] >= 0).sum())
        new = more.indices[row]
        new = new[(new >= 0) & ~np.isin(new, ids[row, :have])][: ids.shape[1] - have]
        lowest = scores[row, have - 1] if have else np.float32(1 / (n_labels + 1))
        ids[row, have : have + len(new)] = new
        steps = 1 - np.arange(1, len(new) + 1) / (n_labels + 1)
        scores[row, have : have + len(new)] = lowest * steps
    return TopK._trusted(ids, scores, top.n_labels)
