"""Dataclasses as plain JSON values, and back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["from_plain", "to_plain"]

T = TypeVar("T")
_LARGEST = 2**53  # whole numbers up to it are the same in JSON readers that only know floats


def to_plain(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, as JSON has them."""
    return {name: _plain(item) for name, item in asdict(value).items()}


def _plain(value: Any) -> Any:
    """JSON knows neither tuples nor keys that are numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def from_plain(kind: type[T], value: Any) -> T:
    """Return a dataclass from what ``to_plain`` made of it.

    Raises an AttributeError, LookupError, TypeError or ValueError if the value has another shape or
    holds a number that is not finite.

    Parameters
    ----------
    kind : type
        A dataclass whose fields are of types such as ``int``, ``str | None``, ``tuple[X, ...]``,
        ``dict[int, float]`` or dataclasses again; ``Any`` is taken as it is.
    value : dict
        Its fields by name; those with a default may be missing, and other names are left out.
    """
    read: Callable[[Any], T] = _reader(kind)  # type: ignore[arg-type]
    return read(value)


@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Return the function that reads values of a type."""
    if isinstance(kind, type) and is_dataclass(kind):
        readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
        return lambda value: kind(**{n: readers[n](value[n]) for n in value if n in readers})
    inner = [_reader(each) for each in get_args(kind) if each is not ...]
    if get_origin(kind) is UnionType:  # X | None
        return lambda value: None if value is None else inner[0](value)
    if get_origin(kind) is dict:
        name = get_args(kind)[0]
        return lambda value: {name(key): inner[1](item) for key, item in value.items()}
    if get_origin(kind) is tuple and get_args(kind)[-1] is ...:
        return lambda value: tuple(map(inner[0], value))
    if get_origin(kind) is tuple:
        return lambda value: tuple(r(item) for r, item in zip(inner, value, strict=True))
    return functools.partial(_scalar, kind)


def _scalar(kind: Any, value: Any) -> Any:
    """Return a value of a type that has no parts."""
    if kind in (int, float) and type(value) in (int, kind) and abs(value) <= _LARGEST:
        return kind(value)
    if kind is Any or (kind not in (int, float) and type(value) is kind):
        return value
    raise TypeError(f"{value!r:.40} is no {kind.__name__}")
