"""``Description``: what ``describe`` found, as a table, as plain data, as a plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longtail.exceptions import MissingDependencyError

__all__ = ["Bin", "Description", "SplitFacts"]


@dataclass(frozen=True)
class SplitFacts:
    """What there is to say about one split; None where it has no such part."""

    rows: int
    labels_per_point: float | None  # positives / rows
    points_per_label: float | None  # positives / L
    labels_with_positives: int | None
    labels_unseen_in_training: int | None  # with positives here but none in train
    features_per_point: float | None  # non-zeros / rows
    words_per_text: float | None
    rows_without_labels: int | None
    rows_without_features: int | None
    duplicates: int | None  # rows whose text, or else features, an earlier row of the split has
    also_in_train: int | None  # rows whose text, or else features, a training row has


@dataclass(frozen=True)
class Bin:
    """Head, torso, tail or unseen: labels by their number of training rows."""

    name: str
    least: int
    most: int | None
    labels: int
    share_of_labels: float
    share_of_positives: float


@dataclass(frozen=True, eq=False)
class Description:
    """Statistics of a data set: prints as a table; ``to_dict()`` for programs; ``plot()``."""

    name: str | None
    n_features: int | None
    n_labels: int
    splits: dict[str, SplitFacts]
    bins: tuple[Bin, ...]
    frequencies: np.ndarray = field(repr=False)  # (L,) int64 training rows of each label
    pos80: float | None = None  # smallest share of the labels that holds 80 % of the positives
    compared_by: str | None = "text"  # what duplicates were told by: text, features, or neither

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON; without the frequencies of single labels."""
        return {
            "name": self.name,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "pos80": self.pos80,
            "splits": {name: dict(vars(facts)) for name, facts in self.splits.items()},
            "bins": [dict(vars(bin)) for bin in self.bins],
            "compared_by": self.compared_by,
        }

    def __str__(self) -> str:
        return "\n".join(_table(self))

    def plot(self, ax: Any = None) -> Any:
        """Return labels by rank against their number of training rows, both logarithmic.

        Head, torso and tail are shaded. Draws on ``ax`` or a new figure, and returns the axes
        (``ax.figure.savefig("labels.png")``). Needs matplotlib: the extra "plot".

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise MissingDependencyError("matplotlib", "plot", "Description.plot") from None
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
        counts = np.sort(self.frequencies)[::-1]
        counts = counts[counts > 0]
        start = 0
        for bin, colour in zip(self.bins, ("#4c72b0", "#55a868", "#c44e52"), strict=False):
            caption = (
                f"{bin.name} ({_range(bin)}): {bin.share_of_labels:.1%} of labels, "
                f"{bin.share_of_positives:.1%} of positives"
            )
            # From half a rank before to half a rank after, so that bins touch.
            edges = (start + 0.5, start + bin.labels + 0.5)
            ax.axvspan(*edges, color=colour, alpha=0.15, lw=0, label=caption)
            start += bin.labels
        ax.plot(np.arange(1, len(counts) + 1), counts, color="#222222", lw=1.4)
        ax.set_xscale("log")
        ax.set_yscale("log")
        if len(counts):
            ax.set_xlim(0.5, len(counts) + 0.5)
            ax.set_ylim(0.7, counts[0] * 1.6)
        ax.set_xlabel("label rank, most frequent first")
        ax.set_ylabel("training rows")
        unseen = len(self.frequencies) - len(counts)
        note = f", {unseen:,} without a training row" if unseen else ""
        ax.set_title(f"{self.name or 'data set'}: {self.n_labels:,} labels{note}", fontsize=10)
        ax.legend(loc="lower left", fontsize=8, framealpha=0.9, edgecolor="none")
        return ax


_ROWS = (
    ("rows", "rows"),
    ("labels per point", "labels_per_point"),
    ("points per label", "points_per_label"),
    ("labels with positives", "labels_with_positives"),
    ("labels unseen in training", "labels_unseen_in_training"),
    ("features per point", "features_per_point"),
    ("words per text", "words_per_text"),
    ("rows without labels", "rows_without_labels"),
    ("rows without features", "rows_without_features"),
    ("duplicates", "duplicates"),
    ("also in train", "also_in_train"),
)


def _table(facts: Description) -> Iterator[str]:
    width = f"{facts.n_features:,} features, " if facts.n_features is not None else ""
    yield f"{facts.name or 'data set'}: {width}{facts.n_labels:,} labels"
    yield ""
    splits = list(facts.splits.values())
    rows: list[tuple[str, ...]] = [("", *facts.splits)]
    for title, name in _ROWS:
        values = [getattr(split, name) for split in splits]
        if any(value is not None for value in values):
            rows.append((title, *map(_cell, values)))
    yield from _aligned(rows)
    yield ""
    yield from _aligned(
        [("labels by training rows", "labels", "of labels", "of positives")]
        + [
            (
                f"{bin.name} ({_range(bin)})",
                _cell(bin.labels),
                f"{bin.share_of_labels:.1%}",
                f"{bin.share_of_positives:.1%}",
            )
            for bin in facts.bins
        ]
    )
    if facts.pos80 is not None:
        yield ""
        yield f"{facts.pos80:.1%} of the labels hold 80 % of the positives"
    if facts.compared_by == "features":
        yield "rows were compared by their features"


def _range(bin: Bin) -> str:
    if bin.most is None:
        return f"{bin.least:,} or more"
    return str(bin.least) if bin.least == bin.most else f"{bin.least:,} to {bin.most:,}"


def _cell(value: float | int | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join([f"{row[0]:<{widths[0]}}", *cells]).rstrip()
