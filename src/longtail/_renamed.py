"""Names and arguments that had another name, or another place, for one version."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

__all__ = ["keyword_only", "moved", "renamed"]

P = ParamSpec("P")
R = TypeVar("R")


def moved(module: str, name: str, homes: Mapping[str, str]) -> Any:
    """Return what has left a module, with a warning: the body of its ``__getattr__``.

    Parameters
    ----------
    module : str
        The old place of the name.
    name : str
        What was asked for.
    homes : mapping of str to str
        Names that have left, and where each is now. Others raise AttributeError.

    >>> moved("longtail.data", "Topk", {"TopK": "longtail.answers"})
    Traceback (most recent call last):
    AttributeError: module 'longtail.data' has no attribute 'Topk'
    """
    if name not in homes:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warnings.warn(
        f"{module}.{name} has moved to {homes[name]}.{name}; the old name goes in 0.2",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(importlib.import_module(homes[name]), name)


def renamed(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take arguments by their old names, with a warning: ``renamed(old="new")``.

    >>> @renamed(deny="exclude")
    ... def select(eta, *, exclude=None):
    ...     return exclude
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     select([], deny=[1])
    [1]
    >>> print(said[0].message)
    select: deny is called exclude now; the old name goes in 0.2
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old, new in new_names.items():
                if old in kwargs:
                    if new in kwargs:
                        raise TypeError(f"{old} is the old name of {new}: give one of them")
                    _warn(f"{function.__name__}: {old} is called {new} now; the old name")
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return wrap


def keyword_only(*old_order: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a method of one positional argument take several, in an old order, with a warning.

    >>> class Joint:
    ...     @keyword_only("X", "Y")
    ...     def fit(self, Y, *, X):
    ...         return Y, X
    >>> Joint().fit("labels", X="rows")
    ('labels', 'rows')
    """

    def wrap(method: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            instance, *given = args
            if 1 < len(given) <= len(old_order):
                names = old_order[: len(given)]
                twice = [name for name in names if name in kwargs]
                if twice:
                    raise TypeError(f"{method.__name__} got {twice[0]} twice")
                order = ", ".join(f"{name}=" for name in names)
                _warn(f"{method.__qualname__} takes arguments by name now, {order}; the old order")
                kwargs.update(zip(names, given, strict=True))
                given = []
            return method(instance, *given, **kwargs)  # type: ignore[arg-type]

        return call

    return wrap


def _warn(what: str) -> None:
    warnings.warn(f"{what} goes in 0.2", DeprecationWarning, stacklevel=3)
