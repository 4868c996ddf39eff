"""Numbers and names as people read them: shares, counts, aligned columns, printable text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

__all__ = [
    "align",
    "count_range",
    "per_cent",
    "printable",
    "propensity_line",
    "wrapped",
]

_WIDTH = 96
_JOINERS = "\u200c\u200d"


def wrapped(text: str, first: str = "", rest: str | None = None) -> str:
    """Return printable text in lines of at most 96 columns, which begin with ``first`` and
    ``rest``.
    """
    rest = first if rest is None else rest
    return textwrap.fill(printable(text), _WIDTH, initial_indent=first, subsequent_indent=rest)


def align(rows: Sequence[Sequence[str]]) -> str:
    """Return columns of printable text padded to equal width: the first to the left, the others to
    the right.

    A row of one cell is a heading and widens no column.
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    n_columns = max(map(len, shown))
    full = [row for row in shown if len(row) == n_columns]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    lines = []
    for row in shown:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=False)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def per_cent(value: float) -> str:
    """Return a fraction as a number of per cent: two decimals, or two digits where that would hide
    it.

    >>> per_cent(0.57104), per_cent(0.0000123), per_cent(0.0)
    ('57.10', '0.0012', '0.00')
    """
    scaled = 100.0 * value
    if not scaled or abs(scaled) >= 0.1:
        return f"{scaled:.2f}"
    if abs(scaled) >= 0.01:
        return f"{scaled:.3f}"
    return f"{scaled:.2g}" if abs(scaled) >= 1e-4 else f"{scaled:.1e}"


def count_range(low: int, high: int, *, compact: bool = False) -> str:
    """Return ``3–17``, or ``3–17k`` where space is short.

    >>> count_range(3, 3), count_range(3, 17_400), count_range(3, 17_400, compact=True)
    ('3', '3–17,400', '3–17k')
    """
    ends = [_compact(n) if compact else f"{n:,}" for n in (low, high)]
    return ends[0] if low == high else "\N{EN DASH}".join(ends)


def _compact(n: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= size:
            return f"{n / size:.2g}{unit}" if n < 100 * size else f"{n / size:.0f}{unit}"
    return str(n)


def propensity_line(constants: dict[str, object]) -> str:
    """Return the model and constants on one line, such as ``JainPropensity(a=0.55, b=1.5), n_rows
    50``.
    """
    apart = ("model", "min", "max", "n_labels")
    model, low, high, _ = (constants.get(name) for name in apart)
    known = {name: v for name, v in constants.items() if v is not None and name not in apart}
    inside = ", ".join(f"{name}={_short(value)}" for name, value in known.items())
    span = "" if low is None else f", from {_short(low)} to {_short(high)}"
    return printable(f"{model or 'given vector'}{f'({inside})' if inside else ''}{span}")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def printable(text: str) -> str:
    """Return a name with U+FFFD for what a terminal might obey or cannot show.

    Any white space becomes a blank; the joiners that some scripts need stay.
    """
    if text.isprintable():
        return text
    return "".join(
        " " if c.isspace() else c if c.isprintable() or c in _JOINERS else "\ufffd" for c in text
    )
