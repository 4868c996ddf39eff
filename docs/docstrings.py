"""From the docstrings of this project to what Sphinx reads.

Docstrings are written for people at a prompt. Indented blocks and aligned columns are pictures and
formulas, shown as they stand; a list of parameters becomes a list of definitions.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

Block = list[str]


def to_rest(lines: list[str]) -> list[str]:
    """Return the same docstring in reStructuredText."""
    groups = itertools.groupby(lines, key=lambda line: bool(line.strip()))
    blocks = [list(group) for filled, group in groups if filled]
    shown: list[str] = []
    literal = False
    for block in blocks:
        text = shown[-2] if len(shown) > 1 else ""
        if block[0].startswith(" "):
            if not literal and not text.endswith("::"):
                shown += ["::", ""]
            literal = True
        elif is_picture(block):
            block, literal = ["::", "", *("    " + line for line in block)], True
        else:
            literal = False
        shown += [*parameters(block), ""] if is_section(block) else [*block, ""]
    return shown


def is_picture(block: Block) -> bool:
    """Aligned columns with continuation lines, which are not one of reStructuredText's tables."""
    columns = re.match(r"\S.*?\S {2,}\S", block[0]) and not block[0].startswith(("=", ">>>"))
    return bool(columns) and any(line.startswith(" ") for line in block)


def is_section(block: Block) -> bool:
    return len(block) > 2 and set(block[1].strip()) == {"-"}


def parameters(block: Block) -> Block:
    """``name : meaning``, or a name with its meaning below, as terms and definitions."""
    shown = [f"**{block[0]}**", ""]
    if block[2].startswith(">>>"):  # examples are shown as they are
        return [*shown, *block[2:]]
    for line in block[2:]:
        found = re.match(r"([\w*, ]+?) ?: (.+)", line)
        if line.startswith(" "):
            shown.append(line)
        elif found:
            shown += [f"``{found[1]}``", f"    {found[2]}"]
        else:
            shown.append(f"``{line}``")
    return shown


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_rest(lines)
