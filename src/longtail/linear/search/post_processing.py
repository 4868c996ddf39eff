"""Post-processors: how raw scores along a path become the score of a label.

    noop          z of the last level
    lp-hinge      product over the path of exp(-max(0, 1 - z)^p)      p = 1 … 16: "l3-hinge"
    sigmoid       product over the path of 1 / (1 + exp(-z))
    log-lp-hinge, log-sigmoid      the logarithms of these, so sums

The hinge forms saturate at z >= 1: confident labels tie, and ties go to the smaller label id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

__all__ = ["post_processors"]

_NOOP, _HINGE, _SIGMOID, _LOG_HINGE, _LOG_SIGMOID = range(5)


def post_processors(names: str | Sequence[str], depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return native codes and powers of one name for all levels, or of one name per level.

    The levels of one model share a family; only the last may be "noop" beside others.

    >>> post_processors("l3-hinge", 2)
    (array([1, 1], dtype=int32), array([3, 3], dtype=int32))
    """
    each = [names] * depth if isinstance(names, str) else list(names)
    if len(each) != depth:
        raise ValueError(f"post_processor names {len(each)} levels, but the tree has {depth}")
    codes = [_parse(name) for name in each]
    families = {code for code, _ in (codes[:-1] if codes[-1][0] == _NOOP else codes)}
    if len(families) > 1:
        raise ValueError(
            f"post_processor {each!r} mixes families: use one for all levels; "
            'only the last level may differ, and then it must be "noop"'
        )
    return (
        np.array([code for code, _ in codes], np.int32),
        np.array([power for _, power in codes], np.int32),
    )


def _parse(name: str) -> tuple[int, int]:
    plain = {"noop": _NOOP, "sigmoid": _SIGMOID, "log-sigmoid": _LOG_SIGMOID}
    if name in plain:
        return plain[name], 1
    match = re.fullmatch(r"(log-)?l([1-9]|1[0-6])-hinge", str(name))
    if not match:
        raise ValueError(
            f"unknown post_processor {name!r}: use noop, sigmoid, log-sigmoid, "
            "lp-hinge or log-lp-hinge with p from 1 to 16 (for instance l3-hinge)"
        )
    return (_LOG_HINGE if match[1] else _HINGE), int(match[2])
