"""Can the propensities be true? What the most confident answers say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.audit.missing import Pairs, missing_probability
from longtail.metrics import LabelBins
from longtail.report.slices import named_bins

__all__ = ["FrequencyGroup", "by_frequency"]

_Z = 3.0  # standard errors that chance may explain


@dataclass(frozen=True)
class FrequencyGroup:
    """Labels of like frequency under one propensity model.

    ``observed``: their positives; ``implied``: how many more there should be if the propensities
    were right, sum of n_j (1 / p_j - 1); ``found``: how many of these the examined pairs account
    for, the sum of their missing probabilities. ``n_confident``, ``hit_rate``, ``ceiling``: pairs
    about which the model is most confident, the share of them that was observed, and their mean
    propensity, which that share cannot exceed but by chance. ``is_refuted``: it does, by more than
    three standard errors.
    """

    name: str
    n_labels: int
    min_count: int
    max_count: int
    observed: float
    implied: float
    found: float
    n_confident: int
    hit_rate: float
    ceiling: float

    @property
    def is_refuted(self) -> bool:
        return self.n_confident > 0 and _lower(self.hit_rate, self.n_confident) > self.ceiling


def by_frequency(
    pairs: Pairs, counts: np.ndarray, inverse: np.ndarray, bins: LabelBins, n_confident: int
) -> tuple[FrequencyGroup, ...]:
    """Return one group for each bin that has labels, from head to tail.

    P(observed | x) = p_j P(relevant | x) never exceeds p_j. So among pairs chosen by x alone, here
    those of largest probability over propensity, the observed share has at most the mean of p_j as
    its expectation, whatever the truth is.
    """
    propensity = 1 / np.maximum(inverse, 1.0)
    p = propensity[pairs.label]
    missing = np.where(pairs.absent, missing_probability(pairs.proba, p), 0.0)
    group = bins.bin_of_label[pairs.label]
    out = []
    for name, b in named_bins(bins):
        inside = np.flatnonzero(group == b)
        order = np.argsort(-(pairs.proba[inside] / p[inside]), kind="stable")[:n_confident]
        sure = inside[order]
        own = bins.bin_of_label == b
        out.append(
            FrequencyGroup(
                name=name,
                n_labels=int(bins.n_labels[b]),
                min_count=int(bins.min_count[b]),
                max_count=int(bins.max_count[b]),
                observed=float(counts[own].sum()),
                implied=float((counts[own] * (1 / propensity[own] - 1)).sum()),
                found=float(missing[inside].sum()),
                n_confident=len(sure),
                hit_rate=float(pairs.hit[sure].mean()) if len(sure) else 0.0,
                ceiling=float(p[sure].mean()) if len(sure) else 0.0,
            )
        )
    return tuple(out)


def _lower(rate: float, n: int) -> float:
    """Return the lower end of Wilson's interval at ``_Z`` standard errors."""
    z2 = _Z * _Z
    spread = _Z * np.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return float((rate + z2 / (2 * n) - spread) / (1 + z2 / n))
