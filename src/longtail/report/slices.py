"""The same answers looked at by label frequency and label by label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longtail.metrics import ConfusionCounts, LabelBins, Matches, contribution_by_bin

__all__ = ["Bin", "Label", "bin_name", "by_bin", "most_missed", "most_overpredicted"]


@dataclass(frozen=True)
class Bin:
    """Labels of similar frequency; bins are about equal in volume. Dictionaries are keyed by k.

    ``contribution`` adds up over bins to P@k; ``recall`` is the share of the bin's test positives
    that were found; ``coverage`` the share of its ``n_present`` labels (with a test positive) that
    were answered rightly at least once.
    """

    name: str
    n_labels: int
    n_present: int
    min_count: int
    max_count: int
    n_positives: float
    contribution: dict[int, float]
    recall: dict[int, float]
    coverage: dict[int, float]


@dataclass(frozen=True)
class Label:
    """One label at the largest k. ``train_count`` is None where training labels are not known."""

    id: int
    name: str | None
    train_count: int | None
    positives: float
    predicted: float
    hits: float


def by_bin(matches: Matches, bins: LabelBins, ks: tuple[int, ...]) -> tuple[Bin, ...]:
    """One ``Bin`` for every bin with labels, from head to tail."""
    group, n_bins = bins.bin_of_label, len(bins)
    counts = {k: matches.label_counts(k) for k in ks}
    shares = {k: contribution_by_bin(None, matches, bins, k) for k in ks}
    positives = counts[ks[0]].positives
    present = np.bincount(group[positives > 0], minlength=n_bins)
    volume = np.bincount(group, weights=positives, minlength=n_bins)
    covered = {k: np.bincount(group[counts[k].true_positives > 0], minlength=n_bins) for k in ks}
    used = [b for b in range(n_bins) if bins.n_labels[b]]
    return tuple(
        Bin(
            name=bin_name(place, len(used)),
            n_labels=int(bins.n_labels[b]),
            n_present=int(present[b]),
            min_count=int(bins.min_count[b]),
            max_count=int(bins.max_count[b]),
            n_positives=float(volume[b]),
            contribution={k: float(shares[k].contribution[b]) for k in ks},
            recall={k: float(shares[k].recall[b]) for k in ks},
            coverage={k: float(covered[k][b] / present[b]) if present[b] else 0.0 for k in ks},
        )
        for place, b in enumerate(used)
    )


def bin_name(place: int, n: int) -> str:
    """What the bin at this place of n is called."""
    if place == 0:
        return "head" if n > 1 else "all"
    return "tail" if place == n - 1 else str(place + 1)


def most_missed(
    matches: Matches, k: int, n: int, names: Sequence[str] | None, train: np.ndarray | None
) -> tuple[Label, ...]:
    """The labels with the most false negatives at k: true, but not among the answers."""
    counts = matches.label_counts(k)
    return _largest(counts.false_negatives, counts, n, names, train)


def most_overpredicted(
    matches: Matches, k: int, n: int, names: Sequence[str] | None, train: np.ndarray | None
) -> tuple[Label, ...]:
    """The labels with the most false positives at k: answered, but not true."""
    counts = matches.label_counts(k)
    return _largest(counts.false_positives, counts, n, names, train)


def _largest(
    by: np.ndarray,
    counts: ConfusionCounts,
    n: int,
    names: Sequence[str] | None,
    train: np.ndarray | None,
) -> tuple[Label, ...]:
    order = np.argsort(-by, kind="stable")[:n]
    return tuple(
        Label(
            id=int(j),
            name=None if names is None else str(names[int(j)]),
            train_count=None if train is None else int(train[j]),
            positives=float(counts.positives[j]),
            predicted=float(counts.predicted[j]),
            hits=float(counts.true_positives[j]),
        )
        for j in order
        if by[j] > 0
    )
