"""How far the probabilities of an answer can be trusted, overall and by label frequency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.metrics import LabelBins, Matches, reliability
from longtail.report.slices import named_bins

__all__ = ["Calibration", "Group", "measure_calibration"]


@dataclass(frozen=True)
class Group:
    """Pairs of the labels of one frequency bin."""

    name: str
    n_pairs: int
    error: float
    proba: float
    hit_rate: float


@dataclass(frozen=True)
class Calibration:
    """Expected calibration error over the first ``k`` answers of every row.

    ``proba``, ``hit_rate`` and ``counts`` are the points of the reliability plot, by rising
    probability; ``groups`` the same error within labels of like frequency, from head to tail.
    """

    k: int
    error: float
    n_pairs: int
    proba: tuple[float, ...]
    hit_rate: tuple[float, ...]
    counts: tuple[int, ...]
    groups: tuple[Group, ...]


def measure_calibration(
    matches: Matches, k: int, bins: LabelBins, *, n_bins: int = 15
) -> Calibration:
    """Compare the scores of ``matches``, which must be probabilities, with the truth."""
    whole = reliability(None, matches, k, n_bins=n_bins)
    groups = []
    for name, b in named_bins(bins):
        part = reliability(None, matches, k, n_bins=n_bins, labels=bins.bin_of_label == b)
        n_pairs = int(part.count.sum())
        proba, hit_rate = (
            float(np.average(values, weights=part.count)) if n_pairs else 0.0
            for values in (part.proba, part.hit_rate)
        )
        groups.append(Group(name, n_pairs, part.error, proba, hit_rate))
    return Calibration(
        k=k,
        error=whole.error,
        n_pairs=int(whole.count.sum()),
        proba=tuple(whole.proba.tolist()),
        hit_rate=tuple(whole.hit_rate.tolist()),
        counts=tuple(whole.count.tolist()),
        groups=tuple(groups),
    )
