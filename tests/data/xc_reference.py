"""The text formats once more, slowly and straight from the grammar, to compare with."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
ENTRY = re.compile(rb"(\d+):(" + NUMBER + rb")")
LABELS = re.compile(rb"\d+(?:,\d+)*")
MAX_COLUMNS = 2**31 - 1


class Refused(Exception):
    """With the line that the reader must name."""

    def __init__(self, line: int) -> None:
        self.line = line


def nearest_float32(text: bytes | str) -> np.float32:
    """The float32 nearest to a decimal number, ties to even, by exact arithmetic."""
    text = text.decode() if isinstance(text, bytes) else text
    mantissa, _, exponent = text.lower().partition("e")
    if exponent and abs(int(exponent)) > 9999:  # as large or small as that, without a billion zeros
        text = f"{mantissa}e{9999 if int(exponent) > 0 else -9999}"
    exact = Fraction(text)
    with np.errstate(over="ignore"):
        guess = np.float32(float(text))
    if np.isinf(guess):
        guess = np.copysign(np.finfo(np.float32).max, guess)
        if abs(exact) >= Fraction(2) ** 128 - Fraction(2) ** 103:  # the midpoint to 2^128
            return np.float32(np.copysign(np.inf, guess))
    with np.errstate(over="ignore"):
        around = [np.nextafter(guess, np.float32(side)) for side in (-np.inf, np.inf)]
    candidates = [c for c in (guess, *around) if np.isfinite(c)]
    best = min(candidates, key=lambda c: (abs(Fraction(float(c)) - exact), c.view(np.uint32) & 1))
    return np.float32(np.copysign(abs(best), -1 if text.startswith("-") else 1))


def parse_row(line, n_columns, n_labels, labelled=True, unit=False):
    """``(labels, {index: value})`` of one line; raises ValueError."""
    words = re.split(rb"[ \t]+", line)
    labels = []
    if labelled and words[0] and not ENTRY.fullmatch(words[0]):
        if not LABELS.fullmatch(words[0]):
            raise ValueError(words[0])
        labels = sorted({int(word) for word in words[0].split(b",")})
        words = words[1:]
    sums: dict[int, list[float]] = {}
    for word in filter(None, words):
        match = ENTRY.fullmatch(word)
        if not match:
            raise ValueError(word)
        value = float(nearest_float32(match[2]))
        if not np.isfinite(value) or (unit and not 0 <= value <= 1):
            raise ValueError(word)
        sums.setdefault(int(match[1]), []).append(value)
    with np.errstate(over="ignore"):
        entries = {i: np.float32(sum(v[1:], v[0])) for i, v in sorted(sums.items())}
    if any(i >= n_columns for i in entries) or any(label >= n_labels for label in labels):
        raise ValueError(line)
    for i, value in entries.items():
        if not np.isfinite(value) or (unit and sum(sums[i]) > 1):
            raise ValueError(line)
    return labels, entries


def parse(text: bytes, *, header=True, labelled=True, unit=False):
    """``(N, D, L, rows)``; raises Refused."""
    text = text.removeprefix(b"\xef\xbb\xbf")
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    counts = rb"[ \t]+".join([rb"(\d+)"] * (3 if labelled else 2))
    match = re.fullmatch(rb"[ \t]*" + counts + rb"[ \t]*", lines[0]) if lines else None
    n_rows, n_columns, n_labels = None, MAX_COLUMNS, MAX_COLUMNS
    if match:
        n_rows, n_columns, n_labels = (*map(int, match.groups()), 0)[:3]
        if max(n_columns, n_labels) > MAX_COLUMNS or n_rows > 10**18:
            raise Refused(1)
        lines = lines[1:]
    elif header is True:
        raise Refused(1)
    first_line = 2 if match else 1
    rows = []
    for number, line in enumerate(lines, first_line):
        try:
            row = parse_row(line, n_columns, n_labels, labelled, unit)
        except ValueError:
            raise Refused(number) from None
        if len(rows) == n_rows:
            if any(row):
                raise Refused(number)
            continue
        rows.append(row)
    if n_rows is not None and len(rows) < n_rows:
        raise Refused(first_line + len(rows))
    if not match:
        while rows and not any(rows[-1]):
            rows.pop()
        n_rows = len(rows)
        n_columns = max((i + 1 for _, entries in rows for i in entries), default=0)
        n_labels = max((label + 1 for labels, _ in rows for label in labels), default=0)
    return n_rows, n_columns, n_labels, rows


def entries_of(matrix) -> list[dict[int, np.float32]]:
    """Rows of a CSR matrix as dictionaries, in stored order."""
    bounds = zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    return [
        dict(zip(matrix.indices[a:b].tolist(), matrix.data[a:b], strict=True)) for a, b in bounds
    ]


def assert_same(X, Y, expected) -> None:
    """A result of ``read_xc`` equals one of ``parse``, bit by bit."""
    n_rows, n_columns, n_labels, rows = expected
    assert X.shape == (n_rows, n_columns)
    assert Y.shape == (n_rows, n_labels)
    for got, (_, entries) in zip(entries_of(X), rows, strict=True):
        assert list(got) == list(entries)
        assert (
            np.array(list(got.values()), np.float32).tobytes()
            == np.array(list(entries.values()), np.float32).tobytes()
        )
    assert [list(row) for row in entries_of(Y)] == [labels for labels, _ in rows]
