"""Small charts as inline SVG: lines over k, and grouped bars. No plotting package, no script.

Colours and fonts are CSS classes (``page.css``), so one drawing serves light and dark. The drawings
are laid out at the width of a phone (360 units) and scale up, so that text stays legible on both.
Every mark carries a ``<title>``, which browsers show on hover and screen readers speak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["HEIGHT", "RIGHT", "TOP", "WIDTH", "Series", "bar_chart", "line_chart"]

WIDTH, HEIGHT = 360, 230
LEFT, RIGHT, TOP = 38, 8, 12


@dataclass(frozen=True)
class Series:
    """One line, or one bar of every group: ``values`` in drawing order, intervals where known."""

    name: str
    values: Sequence[float]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None


def line_chart(title: str, ticks: Sequence[str], series: Sequence[Series]) -> str:
    """Return one line a series over the positions ``ticks``, with its interval as a whisker."""
    bottom = 24
    axis = _Axis([v for s in series for v in (*s.values, *_known(s.high))], bottom)
    step = (WIDTH - LEFT - RIGHT) / max(len(ticks), 1)
    parts = [axis.draw()]
    for i, tick in enumerate(ticks):
        parts.append(_text(LEFT + (i + 0.5) * step, HEIGHT - bottom + 16, tick))
    for number, s in enumerate(series):
        # Shifted sideways by a little, so that whiskers of equal heights do not hide one another.
        shift = (number - (len(series) - 1) / 2) * min(5.0, step / 12)
        xs = [LEFT + (i + 0.5) * step + shift for i in range(len(ticks))]
        ys = [axis.y(v) for v in s.values]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
        marks = [f'<polyline class="line" points="{points}"/>']
        for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
            low, high = _at(s.low, i), _at(s.high, i)
            if low is not None and high is not None:
                marks.append(
                    f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" '
                    f'y1="{axis.y(low):.1f}" y2="{axis.y(high):.1f}"/>'
                )
            hint = _hint(f"{s.name} {ticks[i]}", s.values[i], low, high)
            marks.append(_marker(number, x, y, hint))
        parts.append(f'<g class="s{number + 1}">{"".join(marks)}</g>')
    return _svg(title, parts) + _legend(series, _swatch_marker)


def bar_chart(
    title: str,
    groups: Sequence[str],
    notes: Sequence[str],
    series: Sequence[Series],
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
            height = max(axis.y(0.0) - y, 0.0)
            hint = escape(_hint(f"{group}, {s.name}", s.values[i]))
            shade = _shade(j, len(series))
            parts.append(
                f'<rect class="{shade}" x="{x + 0.75:.1f}" y="{y:.1f}" width="{width - 1.5:.1f}" '
                f'height="{height:.1f}" rx="1.5"><title>{hint}</title></rect>'
            )
    swatch = lambda i: f'<i class="swatch {_shade(i, len(series))}"></i>'  # noqa: E731
    return _svg(title, parts) + _legend(series, swatch)


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
            lines.append(
                f'<line class="{"base" if i == 0 else "grid"}" x1="{LEFT}" x2="{WIDTH - RIGHT}" '
                f'y1="{y:.1f}" y2="{y:.1f}"/>'
                + _text(LEFT - 5, y + 4, f"{i * self.step * 100:.{digits}f} %", "tick")
            )
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
        f'aria-label="{escape(title)}" preserveAspectRatio="xMidYMid meet">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, kind: str = "label") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _marker(number: int, x: float, y: float, hint: str) -> str:
    """Return a shape of its own for each series: colour alone does not tell them apart for every
    eye.
    """
    title = f"<title>{escape(hint)}</title>"
    match number % 5:
        case 0:
            return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4">{title}</circle>'
        case 1:
            corners = [(-3.7, -3.7), (3.7, -3.7), (3.7, 3.7), (-3.7, 3.7)]
        case 2:
            corners = [(0, -5), (4.6, 3.5), (-4.6, 3.5)]
        case 3:
            corners = [(0, -5), (5, 0), (0, 5), (-5, 0)]
        case _:
            corners = [(0, 5), (4.6, -3.5), (-4.6, -3.5)]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon class="mark" points="{points}">{title}</polygon>'


def _swatch_marker(number: int) -> str:
    shape = _marker(number, 7, 7, "").replace("<title></title>", "")
    return (
        f'<svg class="swatch-mark s{number + 1}" viewBox="0 0 14 14" aria-hidden="true">'
        f"{shape}</svg>"
    )


def _legend(series: Sequence[Series], swatch: Callable[[int], str]) -> str:
    items = "".join(f"<li>{swatch(i)}{escape(s.name)}</li>" for i, s in enumerate(series))
    return f'<ul class="legend">{items}</ul>'


def _shade(i: int, n: int) -> str:
    """Return the class of the i-th of n shades out of five, always ending at the darkest."""
    return f"k{5 if n == 1 else 1 + round(4 * i / (n - 1))}"


def _hint(name: str, value: float, low: float | None = None, high: float | None = None) -> str:
    interval = "" if low is None or high is None else f" ({low * 100:.2f} to {high * 100:.2f})"
    return f"{name}: {value * 100:.2f} %{interval}"


def _known(values: Sequence[float | None] | None) -> list[float]:
    return [v for v in values or () if v is not None]


def _at(values: Sequence[float | None] | None, i: int) -> float | None:
    return None if values is None else values[i]
