"""Small charts as inline SVG: lines over k, grouped bars, and a reliability plot.

Colours and fonts are CSS classes (``templates/page.css``), so one drawing serves light and dark.
The drawings are laid out at the width of a phone (360 units) and scale up, so that text stays
legible on both. Every mark carries a ``<title>``, which browsers show on hover and screen readers
speak. All texts are escaped here: the charts are markup.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from longtail.report.formatting import printable

__all__ = ["Series", "bar_chart", "line_chart", "reliability_chart"]

WIDTH, HEIGHT = 360, 230
LEFT, RIGHT, TOP = 38, 8, 12


@dataclass(frozen=True)
class Series:
    """One line, or one bar of every group: ``values`` in drawing order, intervals where known."""

    name: str
    values: Sequence[float]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


def line_chart(title: str, ticks: Sequence[str], series: Sequence[Series]) -> str:
    """Return one line a series over the positions ``ticks``, with its interval as a whisker."""
    bottom = 24
    axis = _Axis([v for s in series for v in (*s.values, *s.high) if v is not None], bottom)
    step = (WIDTH - LEFT - RIGHT) / max(len(ticks), 1)
    parts = [axis.draw()]
    for i, tick in enumerate(ticks):
        parts.append(_text(LEFT + (i + 0.5) * step, HEIGHT - bottom + 16, tick))
    for number, s in enumerate(series):
        # Shifted sideways by a little, so that whiskers of equal heights do not hide one another.
        shift = (number - (len(series) - 1) / 2) * min(5.0, step / 12)
        points, hints, whiskers = [], [], []
        for i, value in enumerate(s.values):
            x, hint = LEFT + (i + 0.5) * step + shift, f"{s.name} {ticks[i]}: {value * 100:.2f} %"
            low, high = (ends[i] if ends else None for ends in (s.low, s.high))
            if low is not None and high is not None:
                whiskers.append(_line("whisker", x, axis.y(low), x, axis.y(high)))
                hint += f" ({low * 100:.2f} to {high * 100:.2f})"
            points.append((x, axis.y(value)))
            hints.append(hint)
        parts.append(_points(number, points, hints, whiskers))
    return _svg(title, parts) + _legend(series, [_swatch(i) for i in range(len(series))])


def bar_chart(
    title: str, groups: Sequence[str], notes: Sequence[str], series: Sequence[Series]
) -> str:
    """Return one group of bars for each of ``groups``, one bar a series, shaded from light to
    dark.
    """
    bottom = 38
    axis = _Axis([v for s in series for v in s.values], bottom)
    step = (WIDTH - LEFT - RIGHT) / max(len(groups), 1)
    width = min(18.0, step * 0.8 / max(len(series), 1))
    parts = [axis.draw()]
    for i, group in enumerate(groups):
        middle = LEFT + (i + 0.5) * step
        parts.append(_text(middle, HEIGHT - bottom + 15, group))
        parts.append(_text(middle, HEIGHT - bottom + 29, notes[i], "note"))
        for j, s in enumerate(series):
            x = middle + (j - len(series) / 2) * width
            y = axis.y(s.values[i])
            hint = _safe(f"{group}, {s.name}: {s.values[i] * 100:.2f} %")
            parts.append(
                f'<rect class="{_shade(j, len(series))}" x="{x + 0.75:.1f}" y="{y:.1f}" '
                f'width="{width - 1.5:.1f}" height="{max(axis.y(0.0) - y, 0.0):.1f}" rx="1.5">'
                f"<title>{hint}</title></rect>"
            )
    swatches = [f'<i class="swatch {_shade(j, len(series))}"></i>' for j in range(len(series))]
    return _svg(title, parts) + _legend(series, swatches)


def reliability_chart(
    proba: Sequence[float], hit_rate: Sequence[float], counts: Sequence[int]
) -> str:
    """Return the hit rate over probability, both in per cent, with the diagonal on which right
    probabilities lie.
    """
    left, bottom, right = 54, HEIGHT - 38, WIDTH - RIGHT  # room for the names of the axes

    def x(value: float) -> float:
        return left + value * (right - left)

    def y(value: float) -> float:
        return bottom - value * (bottom - TOP)

    parts = [_line("base", left, TOP, left, bottom)]
    parts.append(_line("base", x(0), y(0), x(1), y(1), 'stroke-dasharray="4 3"'))
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_line("grid" if tick else "base", left, y(tick), right, y(tick)))
        parts.append(_text(left - 5, y(tick) + 4, f"{100 * tick:g} %", "tick"))
        parts.append(_text(min(x(tick), right - 12), bottom + 15, f"{100 * tick:g} %"))
    points = [(x(p), y(rate)) for p, rate in zip(proba, hit_rate, strict=True)]
    hints = [
        f"{count:,} answers given {100 * p:.1f} %: {100 * rate:.1f} % right"
        for p, rate, count in zip(proba, hit_rate, counts, strict=True)
    ]
    parts.append(_points(0, points, hints))
    parts.append(_text(x(0.5), bottom + 30, "probability given", "note"))
    middle = (TOP + bottom) / 2
    turned = f'transform="rotate(-90 10 {middle:.1f})"'
    parts.append(_text(10, middle, "answers that are right", "note", turned))
    return _svg("Reliability: answers that are right over the probability given", parts)


class _Axis:
    """The vertical axis: from 0 to a round number above the largest value, in per cent."""

    def __init__(self, values: Sequence[float], bottom: int) -> None:
        largest = max([v for v in values if math.isfinite(v)], default=0.0)
        self.step = _round_step(max(largest, 1e-4) / 4)
        self.n = max(1, math.ceil(max(largest, 1e-4) / self.step - 1e-9))
        self.bottom = HEIGHT - bottom

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - TOP) * value / (self.step * self.n)

    def draw(self) -> str:
        digits = max(0, math.ceil(-math.log10(self.step * 100) - 1e-9))
        lines = []
        for i in range(self.n + 1):
            y = self.y(i * self.step)
            lines.append(_line("grid" if i else "base", LEFT, y, WIDTH - RIGHT, y))
            lines.append(_text(LEFT - 5, y + 4, f"{i * self.step * 100:.{digits}f} %", "tick"))
        return "".join(lines)


def _round_step(rough: float) -> float:
    """Return the smallest of 1, 2, 5, 10, ... per cent (or parts of one) that is at least
    ``rough``.
    """
    magnitude = 10.0 ** math.floor(math.log10(rough))
    return next(magnitude * m for m in (1, 2, 5, 10) if magnitude * m >= rough * (1 - 1e-9))


def _svg(title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{_safe(title)}" preserveAspectRatio="xMidYMid meet">{"".join(parts)}</svg>'
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float, more: str = "") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends} {more}/>'


def _text(x: float, y: float, text: str, kind: str = "label", more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" {more}>{_safe(text)}</text>'


def _points(
    number: int,
    points: Sequence[tuple[float, float]],
    hints: Sequence[str],
    whiskers: Sequence[str] = (),
) -> str:
    """Return the line and the marks of a series, in its colour."""
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    marks = [_mark(number, x, y, hint) for (x, y), hint in zip(points, hints, strict=True)]
    drawn = f'<polyline class="line" points="{line}"/>{"".join([*whiskers, *marks])}'
    return f'<g class="s{number + 1}">{drawn}</g>'


_CORNERS = (
    (),  # a circle
    ((-3.7, -3.7), (3.7, -3.7), (3.7, 3.7), (-3.7, 3.7)),
    ((0, -5), (4.6, 3.5), (-4.6, 3.5)),
    ((0, -5), (5, 0), (0, 5), (-5, 0)),
    ((0, 5), (4.6, -3.5), (-4.6, -3.5)),
)


def _mark(number: int, x: float, y: float, hint: str = "") -> str:
    """Return a shape of its own for each series: colour alone does not tell them apart for every
    eye.
    """
    title = f"<title>{_safe(hint)}</title>" if hint else ""
    corners = _CORNERS[number % len(_CORNERS)]
    if not corners:
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4">{title}</circle>'
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon class="mark" points="{points}">{title}</polygon>'


def _swatch(number: int) -> str:
    frame = f'class="swatch-mark s{number + 1}" viewBox="0 0 14 14" aria-hidden="true"'
    return f"<svg {frame}>{_mark(number, 7, 7)}</svg>"


def _legend(series: Sequence[Series], swatches: Sequence[str]) -> str:
    pairs = zip(series, swatches, strict=True)
    items = "".join(f"<li>{swatch}{_safe(s.name)}</li>" for s, swatch in pairs)
    return f'<ul class="legend">{items}</ul>'


def _shade(i: int, n: int) -> str:
    """Return the class of the i-th of n shades out of five, always ending at the darkest."""
    return f"k{5 if n == 1 else 1 + round(4 * i / (n - 1))}"


def _safe(text: str) -> str:
    return escape(printable(text))
