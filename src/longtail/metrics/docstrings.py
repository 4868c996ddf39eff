"""What the parameters of metrics mean, said once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["with_parameters"]

_MEANING = """\
Y_true : matrix of shape (n, L), or list of lists of int
    True labels of the rows.
top : TopK, matrix of scores, or lists of ids
    The answers, best first.
p : array of shape (L,), or a propensity model
    Propensities of labels.
k : int, default=5
    Answers per row that count.
labels : str, default="all"
    Which labels to average over: "all", or "present" in the truth.
normalize : bool, default=True
    Divide by the largest value that any answers could have.
compat : str, default=None
    Conventions of another evaluator (``longtail.metrics.conventions``).
"""
_ENTRIES = dict(re.findall(r"^(\w+)( : .*\n +.*\n)", _MEANING, re.MULTILINE))

F = TypeVar("F", bound=Callable[..., Any])


def with_parameters(metric: F) -> F:
    """Add the meaning of its parameters to the docstring of a metric, in front of the example.

    >>> @with_parameters
    ... def nothing_at_k(k: int = 5) -> float:
    ...     "Return nothing."
    >>> print(nothing_at_k.__doc__.strip())
    Return nothing.
    <BLANKLINE>
    Parameters
    ----------
    k : int, default=5
        Answers per row that count.
    """
    text, mark, example = inspect.cleandoc(metric.__doc__ or "").partition(">>> ")
    entries = "".join(name + _ENTRIES[name] for name in inspect.signature(metric).parameters)
    metric.__doc__ = f"{text.rstrip()}\n\nParameters\n----------\n{entries}\n{mark}{example}"
    return metric
