"""JSON values: what parameters may be, and a parser that refuses what the standard one lets
through.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from longtail.exceptions import ModelFormatError

__all__ = ["parse_json", "to_json"]

_DEEPEST = 50  # nesting of a value; far below what makes json recurse too deep
_MOST_BITS = 1024  # of a whole number: longer ones take quadratic time to read
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_json(value: Any, where: str, depth: int = 0) -> Any:
    """Return ``value`` made of dict, list, str, int, float, bool and None only; ``where`` names it
    in an error.

    NumPy scalars become Python's, tuples become lists, and a float that is not finite becomes
    ``{"$float": "inf"}``.

    >>> to_json({"alpha": np.float32(0.5), "range": (1, 2), "cap": float("inf")}, "params")
    {'alpha': 0.5, 'range': [1, 2], 'cap': {'$float': 'inf'}}
    """
    if depth > _DEEPEST:
        raise ValueError(f"{where} cannot be saved: it is nested more than {_DEEPEST} deep")
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)):
        if int(value).bit_length() > _MOST_BITS:
            raise ValueError(f"{where} cannot be saved: it has more than {_MOST_BITS} bits")
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"$float": str(number)}
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (list, tuple)):
        if all(type(item) is str for item in value):  # label names come by the million
            return list(value)
        return [to_json(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                raise TypeError(
                    f"{where} cannot be saved: its key {key!r} is not a text, or starts with '$'"
                )
        return {
            str.__str__(key): to_json(item, f"{where}[{key!r}]", depth + 1)
            for key, item in value.items()
        }
    hint = "set it to a plain value (number, text, list or dict of those) before saving"
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        hint = "set it to a whole number before saving, so that the model says how it was made"
    raise TypeError(f"{where} cannot be saved: it is a {type(value).__name__}; {hint}")


def parse_json(raw: bytes) -> Any:
    """Return the value of a UTF-8 JSON text. Refuses repeated keys, NaN literals, numbers out of
    range and deep nesting.
    """
    try:
        return json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_int,
            parse_float=_float,
            parse_constant=_constant,
        )
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ModelFormatError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise ModelFormatError("nested too deep") from None


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ModelFormatError(f"the key {key[:100]!r} occurs twice")
            seen.add(key)
    if "$float" in found:
        name = found["$float"]
        if len(found) != 1 or not isinstance(name, str) or name not in _NONFINITE:
            raise ModelFormatError(f"{found!r} is not a number")
        return _NONFINITE[name]
    return found


def _int(text: str) -> int:
    if len(text) > _MOST_BITS * 0.302 + 2:  # log10(2) digits a bit
        raise ModelFormatError(f"a number of {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    number = float(text) if len(text) <= 1000 else math.inf
    if not math.isfinite(number):
        raise ModelFormatError(f"the number {text[:30]} is out of range")
    return number


def _constant(text: str) -> float:
    raise ModelFormatError(f"{text} is not a JSON number")
