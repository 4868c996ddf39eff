"""What the driver of the threaded kernels prints: a line per case, and the sums to compare."""

from __future__ import annotations

import math
from pathlib import Path

EXPECTED = Path(__file__).parent / "sums.txt"


def sums(output: str) -> dict[str, float]:
    """Sum of absolute values by case, of the lines that end in one."""
    found = {}
    for line in output.splitlines():
        if line.endswith("failed"):
            continue
        name, _, number = line[:46].strip(), line[46:60], line[60:]
        found[name] = float(number)
    return found


def differing(output: str) -> dict[str, tuple[float, float]]:
    """Cases whose sums are not those of ``sums.txt``, up to the rounding of other machines."""
    expected, found = sums(EXPECTED.read_text()), sums(output)
    assert found.keys() == expected.keys()
    return {
        name: (value, expected[name])
        for name, value in found.items()
        if not math.isclose(value, expected[name], rel_tol=2e-4)
    }
