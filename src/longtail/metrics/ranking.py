"""Metrics of one ranking at a time, averaged over rows.

Notation: r_1, r_2, ... are the labels predicted for a row, best first (``top``; ties by the smaller
label id); y the row's truth. With graded truth, values in (0, 1], the value of a label is its gain,
as in scikit-learn's ``ndcg_score``: a prediction of a label of value 0.5 is half a hit. Rows
without labels count as 0; an empty slot counts as a wrong label.

All take ``k``, and ``compat`` (see ``longtail.metrics.conventions``). Each has its per-row terms as
``.rows``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.metrics.confusion import ratio
from longtail.metrics.matching import matched
from longtail.metrics.rows import Rows, row_wise
from longtail.metrics.ties import tie_averaged_dcg

__all__ = [
    "dcg_at_k",
    "f1_at_k",
    "hamming_loss_at_k",
    "hit_rate_at_k",
    "ndcg_at_k",
    "precision_at_k",
    "recall_at_k",
]


@row_wise
def precision_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return P@k, the fraction of the k answers that are right.

    The mean over rows of (1/k) sum_{l <= k} y_{r_l}. Divides by k even where a row has fewer than k
    answers, or fewer than k labels. The most reported metric of the field, and the least
    informative about rare labels: see ``macro_precision_at_k`` and ``ps_precision_at_k``.

    >>> from longtail.answers import TopK
    >>> top = TopK([[0, 1], [1, 3]], [[0.9, 0.8], [0.9, 0.3]], n_labels=4)
    >>> precision_at_k([[0, 2], [1, 3]], top, k=2)
    0.75
    """
    m, k, how = matched(Y_true, top, k, compat)
    if how.precision_over_predicted:
        return Rows(ratio(m.hits(k), m.predicted(k)), weights=m.weights)
    return Rows(m.hits(k) / k, weights=m.weights)


@row_wise
def recall_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return R@k, the fraction of a row's labels that are found.

    The mean over rows of (1/||y||_1) sum_{l <= k} y_{r_l}. A row without labels counts as 0. Where
    rows have more than k labels, R@k cannot reach 1.

    >>> recall_at_k([[0, 2], [1]], [[0.9, 0.8, 0.1], [0.1, 0.9, 0.2]], k=1)
    0.75
    """
    m, k, _ = matched(Y_true, top, k, compat)
    return Rows(ratio(m.hits(k), m.positives()), weights=m.weights)


@row_wise
def f1_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return the instance-wise F1@k: the mean over rows of 2 h / (q + ||y||_1).

    h is the number of hits among the q <= k labels predicted. Empty slots predict nothing, so q
    counts only the answers a row has; scikit-learn's ``average="samples"``. ``micro_f1_at_k`` and
    ``macro_f1_at_k`` average differently.

    >>> round(f1_at_k([[0, 2]], [[0.9, 0.8, 0.1]], k=1), 4)
    0.6667
    """
    m, k, _ = matched(Y_true, top, k, compat)
    return Rows(ratio(2 * m.hits(k), m.predicted(k) + m.positives()), weights=m.weights)


@row_wise
def dcg_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return DCG@k, hits discounted by rank: the mean over rows of sum_{l <= k} y_{r_l} / log2(l +
    1).

    Not a fraction: it grows with k.

    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002; linear gain,
    as in all work on extreme classification.

    >>> round(dcg_at_k([[0, 2]], [[0.9, 0.8, 0.7]], k=3), 4)
    1.5
    """
    m, k, how = matched(Y_true, top, k, compat)
    return Rows(tie_averaged_dcg(m, k) if how.average_ties else m.dcg(k), weights=m.weights)


@row_wise
def ndcg_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return nDCG@k, the mean over rows of DCG@k / (the largest DCG@k possible for the row).

    For plain labels the denominator is sum_{l <= min(k, ||y||_1)} 1 / log2(l + 1); for graded truth
    the row's values in descending order take the place of the ones. 0 for a row without labels.

    >>> round(ndcg_at_k([[0, 2]], [[0.9, 0.8, 0.7]], k=3), 7)
    0.9197208
    """
    m, k, how = matched(Y_true, top, k, compat)
    dcg = tie_averaged_dcg(m, k) if how.average_ties else m.dcg(k)
    return Rows(ratio(dcg, m.ideal_dcg(k)), weights=m.weights)


@row_wise
def hit_rate_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return the hit rate@k, also success@k: the fraction of rows with a true label among the first
    k.

    napkinXC and DiSMEC++ call it abandonment@k, a word that web search uses for the complement.
    With graded truth, any value above 0 is a hit.

    >>> hit_rate_at_k([[0, 2], [1]], [[0.9, 0.8, 0.1], [0.9, 0.1, 0.2]], k=1)
    0.5
    """
    m, k, _ = matched(Y_true, top, k, compat)
    return Rows((m.hits(k) > 0).astype(np.float64), weights=m.weights)


@row_wise
def hamming_loss_at_k(Y_true: Any, top: Any, k: int = 5, *, compat: str | None = None) -> Rows:
    """Return the Hamming loss of the first k labels as a set: the fraction of the n L entries that
    are wrong.

    Lower is better. A row has q - h predictions that are false and ||y||_1 - h labels that are
    missed (h hits among q predictions). With many labels the fraction is tiny;
    ``compat="napkinxc"`` gives the number of wrong entries per row instead.

    >>> hamming_loss_at_k([[0, 2]], [[0.9, 0.8, 0.1, 0.0]], k=2)
    0.5
    """
    m, k, how = matched(Y_true, top, k, compat)
    wrong = m.predicted(k) + m.positives() - 2 * m.hits(k)
    return Rows(wrong if how.hamming_per_row else ratio(wrong, m.n_labels), weights=m.weights)
