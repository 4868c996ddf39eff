"""The same answers looked at by label frequency and label by label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longtail.metrics import ConfusionCounts, LabelBins, Matches, contribution_by_bin

__all__ = ["Bin", "Label", "by_bin", "named_bins", "single_labels"]

_WORST = 10  # labels in a list of those behind most errors


@dataclass(frozen=True)
class Bin:
    """Labels of similar frequency; bins are about equal in volume. Dictionaries are keyed by k.

    ``contribution`` adds up over bins to P@k; ``recall`` is the share of the bin's test positives
    that were found; ``coverage`` the share of its ``n_present`` labels (present in the test rows)
    that were answered rightly at least once.
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
    """One label at the largest k. ``train_count`` is None where training labels are not known.

    ``rules``: how often it was answered, and rightly, by each of the other decision rules;
    ``text``: what it is called in words, where that is known.
    """

    id: int
    name: str | None
    train_count: int | None
    positives: float
    predicted: float
    hits: float
    rules: tuple[tuple[float, float], ...] = ()
    text: str | None = None

    @property
    def f1(self) -> float:
        """2 hits / (positives + predicted)."""
        total = self.positives + self.predicted
        return 2 * self.hits / total if total else 0.0


def by_bin(matches: Matches, bins: LabelBins, ks: tuple[int, ...]) -> tuple[Bin, ...]:
    """Return one ``Bin`` for every bin with labels, from head to tail."""
    group, n_bins = bins.bin_of_label, len(bins)
    counts = {k: matches.label_counts(k) for k in ks}
    shares = {k: contribution_by_bin(None, matches, bins, k) for k in ks}
    positives = counts[ks[0]].positives
    present = np.bincount(group[positives > 0], minlength=n_bins)
    volume = np.bincount(group, weights=positives, minlength=n_bins)
    covered = {k: np.bincount(group[counts[k].true_positives > 0], minlength=n_bins) for k in ks}
    return tuple(
        Bin(
            name=name,
            n_labels=int(bins.n_labels[b]),
            n_present=int(present[b]),
            min_count=int(bins.min_count[b]),
            max_count=int(bins.max_count[b]),
            n_positives=float(volume[b]),
            contribution={k: float(shares[k].contribution[b]) for k in ks},
            recall={k: float(shares[k].recall[b]) for k in ks},
            coverage={k: float(covered[k][b] / present[b]) if present[b] else 0.0 for k in ks},
        )
        for name, b in named_bins(bins)
    )


def named_bins(bins: LabelBins) -> list[tuple[str, int]]:
    """Return what each bin with labels is called, and its place in ``bins``, from head to tail."""
    used = [b for b in range(len(bins)) if bins.n_labels[b]]
    if len(used) == 1:
        return [("all", used[0])]
    names = ["head", *(str(place) for place in range(2, len(used))), "tail"]
    return list(zip(names, used, strict=True))


def single_labels(
    matches: Matches,
    others: Sequence[Matches],
    k: int,
    n: int,
    names: Sequence[str] | None,
    texts: Sequence[str] | None,
    train: np.ndarray | None,
) -> tuple[tuple[Label, ...], tuple[Label, ...], tuple[Label, ...]]:
    """Return the labels most often missed at k, those most often answered wrongly, and at most n
    that are true or answered somewhere, by decreasing frequency.

    Where there are more than n, half of them are the most frequent ones, and the others are taken
    at equal distances from the rest, down to the rarest.
    """
    counts = matches.label_counts(k)
    more = [other.label_counts(k) for other in others]

    def label(j: int, others: Sequence[ConfusionCounts] = ()) -> Label:
        return Label(
            id=j,
            name=None if names is None else str(names[j]),
            train_count=None if train is None else int(train[j]),
            positives=float(counts.positives[j]),
            predicted=float(counts.predicted[j]),
            hits=float(counts.true_positives[j]),
            rules=tuple((float(c.predicted[j]), float(c.true_positives[j])) for c in others),
            text=None if texts is None else str(texts[j]) or None,
        )

    def worst(errors: np.ndarray) -> tuple[Label, ...]:
        order = np.argsort(-errors, kind="stable")[:_WORST]
        return tuple(label(int(j)) for j in order if errors[j] > 0)

    seen = (counts.positives > 0) | (counts.predicted > 0)
    for each in more:
        seen |= each.predicted > 0
    frequency = counts.positives if train is None else train
    order = np.flatnonzero(seen)
    order = order[np.lexsort((order, -counts.positives[order], -frequency[order]))]
    if len(order) > n:
        rest = np.linspace(n // 2, len(order) - 1, n - n // 2).round().astype(np.int64)
        order = order[np.concatenate([np.arange(n // 2), rest])]
    listed = tuple(label(int(j), more) for j in order)
    return worst(counts.false_negatives), worst(counts.false_positives), listed
