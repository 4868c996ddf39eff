"""Propensity-scored metrics: a hit on label l counts 1/p_l.

p_l is the probability that label l is observed where it is true. If labels go missing
independently with known p, unnormalised PSP and PSDCG are unbiased estimates of P and DCG on the
complete labels. They can exceed 1 (for rare labels 1/p is
large), so the literature reports them divided by the value of the best possible ranking, the *ratio
of the two means* (not the mean of row-wise ratios). Both are offered: reports should show both,
since normalisation hides propensities that are far off.

``p`` is any object with ``inverse_`` (L,), such as a fitted ``JainPropensity``, or an array of
propensities in (0, 1]. Propensities belong to the training data: fit them there.

Graded truth: a label of value v counts v/p, and the best ranking orders by v/p.

H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for recommendation, tagging,
ranking and other missing label applications", KDD 2016.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.metrics.confusion import ratio
from longtail.metrics.matches import Matches
from longtail.metrics.matching import matched
from longtail.metrics.rows import Rows, row_wise

__all__ = [
    "inverse_propensities",
    "ps_dcg_at_k",
    "ps_ndcg_at_k",
    "ps_precision_at_k",
    "ps_recall_at_k",
]


def inverse_propensities(p: Any, n_labels: int) -> np.ndarray:
    """Return 1/p as float64 (L,), from an object with ``inverse_`` or an array of propensities.

    >>> inverse_propensities([1.0, 0.5], 2)
    array([1., 2.])
    """
    if hasattr(p, "inverse_"):
        inverse = np.ascontiguousarray(p.inverse_, dtype=np.float64)
    elif hasattr(p, "fit"):
        raise ValueError(
            f"this {type(p).__name__} is not fitted yet: call fit with the training labels"
        )
    else:
        propensity = np.asarray(p, dtype=np.float64)
        if propensity.size and not ((propensity > 0) & (propensity <= 1)).all():
            raise ValueError(
                "propensities lie in (0, 1]: for inverse propensities q pass 1/q, "
                "or an object with the attribute inverse_"
            )
        inverse = np.ascontiguousarray(1.0 / propensity)
    if inverse.shape != (n_labels,):
        raise ValueError(
            f"p must hold one propensity for each of the {n_labels} labels, got {inverse.shape}"
        )
    if not np.isfinite(inverse).all() or (inverse < 0).any():
        raise ValueError("inverse propensities must be finite and not negative")
    return inverse


def _rows(found: np.ndarray, ideal: np.ndarray, normalize: bool, m: Matches) -> Rows:
    return Rows(found, ideal if normalize else None, m.weights)


@row_wise
def ps_precision_at_k(
    Y_true: Any, top: Any, p: Any, k: int = 5, *, normalize: bool = True, compat: str | None = None
) -> Rows:
    """Return PSP@k, precision with a hit on label l counted 1/p_l.

    Mean over rows of (1/k) sum_{l <= k} y_{r_l} / p_{r_l}, over that of the best rankings. The best
    ranking of a row lists its true labels by decreasing 1/p. ``normalize=False`` leaves out the
    division.

    >>> scores = [[0.9, 0.8, 0.7, 0.1], [0.1, 0.9, 0.2, 0.3]]
    >>> round(ps_precision_at_k([[0, 2], [1, 3]], scores, [1, 0.5, 0.25, 0.1], k=2), 7)
    0.7647059
    """
    m, k, _ = matched(Y_true, top, k, compat)
    scored = m.under(inverse_propensities(p, m.n_labels))
    return _rows(scored.hits(k) / k, scored.ideal_hits(k) / k, normalize, m)


@row_wise
def ps_recall_at_k(
    Y_true: Any, top: Any, p: Any, k: int = 5, *, normalize: bool = True, compat: str | None = None
) -> Rows:
    """Return PSR@k: PSP@k with 1/||y||_1 in the place of 1/k.

    Mean over rows of (1/||y||_1) sum_{l <= k} y_{r_l} / p_{r_l}, over that of the best rankings.
    With p = 1 the normalised value is recall relative to the largest recall that k answers allow,
    not R@k itself.

    >>> ps_recall_at_k([[0, 2]], [[0.9, 0.8, 0.7]], [1, 1, 0.5], k=2, normalize=False)
    0.5
    """
    m, k, _ = matched(Y_true, top, k, compat)
    scored, size = m.under(inverse_propensities(p, m.n_labels)), m.positives()
    return _rows(ratio(scored.hits(k), size), ratio(scored.ideal_hits(k), size), normalize, m)


@row_wise
def ps_dcg_at_k(
    Y_true: Any, top: Any, p: Any, k: int = 5, *, normalize: bool = True, compat: str | None = None
) -> Rows:
    """Return PSDCG@k: PSP@k with hits discounted by rank.

    Mean over rows of sum_{l <= k} y_{r_l} / (p_{r_l} log2(l + 1)), over that of the best rankings.

    >>> ps_dcg_at_k([[0, 2]], [[0.9, 0.8, 0.7]], [1, 1, 0.5], k=3, normalize=False)
    2.0
    """
    m, k, how = matched(Y_true, top, k, compat)
    scored, size = m.under(inverse_propensities(p, m.n_labels)), k if how.ps_dcg_over_k else 1
    return _rows(scored.dcg(k) / size, scored.ideal_dcg(k) / size, normalize, m)


@row_wise
def ps_ndcg_at_k(
    Y_true: Any, top: Any, p: Any, k: int = 5, *, normalize: bool = True, compat: str | None = None
) -> Rows:
    """Return PSnDCG@k: PSDCG@k, each row divided by its largest DCG@k without propensities.

    Mean over rows of that, over that of the best rankings. The inner denominator is the one of
    nDCG, sum_{l <= min(k, ||y||_1)} 1 / log2(l + 1) for plain labels.

    >>> scores = [[0.9, 0.8, 0.7]]
    >>> round(ps_ndcg_at_k([[0, 2]], scores, [1, 1, 0.5], k=3, normalize=False), 4)
    1.2263
    """
    m, k, _ = matched(Y_true, top, k, compat)
    scored, size = m.under(inverse_propensities(p, m.n_labels)), m.ideal_dcg(k)
    return _rows(ratio(scored.dcg(k), size), ratio(scored.ideal_dcg(k), size), normalize, m)
