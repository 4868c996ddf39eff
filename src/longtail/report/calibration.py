"""How far the probabilities of an answer can be trusted, overall and by label frequency."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from longtail.metrics import LabelBins, Matches, Reliability, reliability
from longtail.report.slices import bin_name

__all__ = ["Calibration", "Group", "measure_calibration", "reliability_chart"]

_SIZE, _LEFT, _TOP, _BOTTOM = 230, 42, 12, 34


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
    """Compares the scores of ``matches``, which must be probabilities, with the truth."""
    whole = reliability(None, matches, k, n_bins=n_bins)
    used = [b for b in range(len(bins)) if bins.n_labels[b]]
    groups = []
    for place, b in enumerate(used):
        part = reliability(None, matches, k, n_bins=n_bins, labels=bins.bin_of_label == b)
        groups.append(
            Group(
                name=bin_name(place, len(used)),
                n_pairs=int(part.count.sum()),
                error=part.error,
                proba=_mean(part, part.proba),
                hit_rate=_mean(part, part.hit_rate),
            )
        )
    return Calibration(
        k=k,
        error=whole.error,
        n_pairs=int(whole.count.sum()),
        proba=tuple(whole.proba.tolist()),
        hit_rate=tuple(whole.hit_rate.tolist()),
        counts=tuple(whole.count.tolist()),
        groups=tuple(groups),
    )


def _mean(part: Reliability, values: np.ndarray) -> float:
    total = part.count.sum()
    return float((part.count * values).sum() / total) if total else 0.0


def reliability_chart(found: Calibration) -> str:
    """Hit rate over probability, with the diagonal on which right probabilities lie."""

    def x(value: float) -> float:
        return _LEFT + value * _SIZE

    def y(value: float) -> float:
        return _TOP + (1 - value) * _SIZE

    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        kind = "grid" if tick else "base"
        parts.append(
            f'<line class="{kind}" x1="{x(0):.1f}" x2="{x(1):.1f}" '
            f'y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
            f'<text class="tick" x="{_LEFT - 5}" y="{y(tick) + 4:.1f}">{tick:g}</text>'
            f'<text class="label" x="{x(tick):.1f}" y="{y(0) + 15:.1f}">{tick:g}</text>'
        )
    parts.append(
        f'<line class="base" x1="{x(0):.1f}" y1="{y(0):.1f}" x2="{x(1):.1f}" y2="{y(1):.1f}"/>'
    )
    points, marks = [], []
    for p, rate, count in zip(found.proba, found.hit_rate, found.counts, strict=True):
        points.append(f"{x(p):.1f},{y(rate):.1f}")
        hint = escape(f"{count:,} pairs given {p:.3f}: {rate:.3f} right")
        marks.append(
            f'<circle class="mark" cx="{x(p):.1f}" cy="{y(rate):.1f}" r="4">'
            f"<title>{hint}</title></circle>"
        )
    line = f'<polyline class="line" points="{" ".join(points)}"/>'
    parts.append(f'<g class="s1">{line}{"".join(marks)}</g>')
    width, height = _LEFT + _SIZE + 12, _TOP + _SIZE + _BOTTOM
    title = f'<text class="note" x="{x(0.5):.1f}" y="{y(0) + 29:.1f}">probability</text>'
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="Reliability" '
        f'preserveAspectRatio="xMidYMid meet">{"".join(parts)}{title}</svg>'
    )
