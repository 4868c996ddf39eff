"""Table cells: how a cell becomes a text or a list of label names.

A label cell may be

    a list, tuple, set or array of names      ["red", "blue"]
    a string that holds a JSON list           ["red", "blue"]
    a string that holds a Python list         ['red', 'blue']     (what pandas writes for a list)
    a string with separators                  red;blue            with label_separator=";"
    a plain string                            red                 one label, without a separator
    missing (None, NaN, NA) or blank          no label

Whole numbers are taken as names ("7"); other numbers are refused, because 7 and 7.0 would differ.
Given a separator, strings are always split at it and never read as lists; the parts are stripped
and empty parts dropped.
"""

from __future__ import annotations

import ast
import json
import numbers
import re
from collections.abc import Sequence
from typing import Any

from longtail.data.place import brief

__all__ = ["check_separator", "is_missing", "label_name", "label_names", "text_from"]

# Adjacent Python strings would silently become one name: ['a' 'b'] (printed by NumPy) is refused.
_ITEM = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+)"""
_PYTHON_LIST = re.compile(rf"\[\s*(?:{_ITEM}\s*(?:,\s*{_ITEM}\s*)*(?:,\s*)?)?\]", re.DOTALL)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas."""
    if value is None or (isinstance(value, float) and value != value):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def text_from(values: Sequence[Any], joiner: str) -> str:
    """Return the text of one or more cells, joined; missing and empty ones are left out.

    Refuses (ValueError) what is neither a string nor a whole number.
    """
    present = (value for value in values if not (is_missing(value) or value == ""))
    return joiner.join(v if isinstance(v, str) else _whole_number(v, "a text") for v in present)


def check_separator(separator: Any) -> None:
    """Refuse a label separator that cannot separate."""
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise ValueError(f"label_separator must be a string such as ';', got {separator!r}")


def label_names(cell: Any, separator: str | None = None) -> list[str]:
    """Return the names in one label cell.

    >>> label_names("['red', 'blue']"), label_names("red; blue", ";"), label_names(None)
    (['red', 'blue'], ['red', 'blue'], [])
    """
    if isinstance(cell, str):
        return _from_string(cell, separator)
    if isinstance(cell, (list, tuple)):
        return [name if isinstance(name, str) else label_name(name) for name in cell]
    if isinstance(cell, (set, frozenset)):
        return sorted(label_name(name) for name in cell)
    if hasattr(cell, "tolist") and getattr(cell, "ndim", 0) == 1:
        return [label_name(name) for name in cell.tolist()]
    return [] if is_missing(cell) else [_whole_number(cell, "a label list")]


def _from_string(cell: str, separator: str | None) -> list[str]:
    if separator is not None:
        return [name for part in cell.split(separator) if (name := part.strip())]
    stripped = cell.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return [stripped] if stripped else []
    try:
        return [label_name(name) for name in json.loads(stripped)]
    except (ValueError, RecursionError):
        pass
    if not _PYTHON_LIST.fullmatch(stripped):
        raise ValueError(f"expected a list of label names, got {brief(stripped)}")
    try:
        return [label_name(name) for name in ast.literal_eval(stripped)]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"expected a list of label names, got {brief(stripped)}") from None


def label_name(name: Any) -> str:
    """Return the name of one label: a string as it is, a whole number in decimal (7 is "7").

    Raises ValueError for anything else.
    """
    return name if isinstance(name, str) else _whole_number(name, "a label name")


def _whole_number(value: Any, what: str) -> str:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    raise ValueError(f"expected {what}, got {brief(value)}")
