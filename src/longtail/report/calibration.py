"""How far the probabilities of an answer can be trusted, overall and by label frequency."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from longtail.metrics import LabelBins, Matches, Reliability, reliability
from longtail.report.charts import HEIGHT, RIGHT, TOP, WIDTH
from longtail.report.slices import bin_name

__all__ = ["Calibration", "Group", "measure_calibration", "reliability_chart"]

_LEFT, _BOTTOM = 54, 38  # room for the names of the axes


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
    """Draw the hit rate over probability, both in per cent, with the diagonal on which right
    probabilities lie.
    """
    bottom, right = HEIGHT - _BOTTOM, WIDTH - RIGHT

    def x(value: float) -> float:
        return _LEFT + value * (right - _LEFT)

    def y(value: float) -> float:
        return bottom - value * (bottom - TOP)

    parts = [
        f'<line class="base" x1="{_LEFT}" x2="{_LEFT}" y1="{TOP}" y2="{bottom}"/>',
        f'<line class="base" stroke-dasharray="4 3" x1="{x(0):.1f}" y1="{y(0):.1f}" '
        f'x2="{x(1):.1f}" y2="{y(1):.1f}"/>',
    ]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        kind = "grid" if tick else "base"
        parts.append(
            f'<line class="{kind}" x1="{_LEFT}" x2="{right}" '
            f'y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
            f'<text class="tick" x="{_LEFT - 5}" y="{y(tick) + 4:.1f}">{100 * tick:g} %</text>'
            f'<text class="label" x="{min(x(tick), right - 12):.1f}" y="{bottom + 15}">'
            f"{100 * tick:g} %</text>"
        )
    points, marks = [], []
    for p, rate, count in zip(found.proba, found.hit_rate, found.counts, strict=True):
        points.append(f"{x(p):.1f},{y(rate):.1f}")
        hint = escape(f"{count:,} answers given {100 * p:.1f} %: {100 * rate:.1f} % right")
        marks.append(
            f'<circle class="mark" cx="{x(p):.1f}" cy="{y(rate):.1f}" r="4">'
            f"<title>{hint}</title></circle>"
        )
    line = f'<polyline class="line" points="{" ".join(points)}"/>'
    parts.append(f'<g class="s1">{line}{"".join(marks)}</g>')
    middle = (TOP + bottom) / 2
    parts.append(f'<text class="note" x="{x(0.5):.1f}" y="{bottom + 30}">probability given</text>')
    parts.append(
        f'<text class="note" transform="rotate(-90 10 {middle})" x="10" y="{middle}">'
        "answers that are right</text>"
    )
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Reliability: '
        f'answers that are right over the probability given" '
        f'preserveAspectRatio="xMidYMid meet">{"".join(parts)}</svg>'
    )
