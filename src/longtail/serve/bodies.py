"""Bodies of requests: bounded before they are parsed, and parsed off the event loop when large.

A parser makes an object of every value, and a validator an error of every wrong one: 8 MB of "1,"
are four million of both, some gigabytes. ``check_json`` counts what a body would be made of by a
few passes over its bytes, which take neither memory nor time worth mentioning. What is left of the
work is done in a thread for bodies above ``AT_ONCE`` bytes, one body at a time, so that the server
answers other requests meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["AT_ONCE", "Bodies", "TooComplex", "check_json"]

AT_ONCE = 1 << 16  # bytes that are parsed on the event loop: well under a millisecond
MOST_FIELDS = 1000  # of an object
MOST_LEVELS = 16
VALUES_PER_ITEM = 20  # of the longest list that is allowed: texts may have some fields each

Parsed = TypeVar("Parsed")
_OPEN, _CLOSED, _COMMA = b"[{", b"]}", ord(",")
_NOT_STRUCTURE = bytes(byte for byte in range(256) if byte not in b"[]{},")


class TooComplex(ValueError):
    """A body has more values, or is nested deeper, than requests may be."""


def check_json(body: bytes, longest: int) -> None:
    """Raise ``TooComplex`` if a list of a JSON text has more than ``longest`` values, an object
    more than ``MOST_FIELDS`` fields, or all of it too many values or levels.

    What is not JSON is left to the parser, which stops at the first byte that is wrong: it makes
    nothing that is not counted here.

    >>> check_json(b'{"texts": ["[1,1,1,1", "\\\\"]"]}', longest=2)
    >>> check_json(b"[1,1,1]", longest=2)
    Traceback (most recent call last):
        ...
    longtail.serve.bodies.TooComplex: a list has more than 2 values
    """
    most = VALUES_PER_ITEM * longest
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') > 4 * (most + 1):  # a string ends, and a value or a name, at every second
        raise TooComplex(f"the request has more than {most:,} values")
    outside = b"".join(plain.split(b'"')[::2])
    structure = outside.translate(None, _NOT_STRUCTURE)
    if len(structure) > 2 * most:
        raise TooComplex(f"the request has more than {most:,} values")
    commas, kinds = [0], [_OPEN[0]]
    for byte in structure:
        if byte == _COMMA:
            commas[-1] += 1
            is_list = kinds[-1] == _OPEN[0]
            if commas[-1] >= (longest if is_list else MOST_FIELDS):
                what = f"a list has more than {longest:,} values"
                raise TooComplex(what if is_list else f"an object has over {MOST_FIELDS:,} fields")
        elif byte in _OPEN:
            if len(kinds) > MOST_LEVELS:
                raise TooComplex(f"the request is nested deeper than {MOST_LEVELS} levels")
            commas.append(0)
            kinds.append(byte)
        elif len(kinds) > 1:
            commas.pop()
            kinds.pop()


class Bodies:
    """Parses bodies, large ones one after the other in a thread."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def parsed(self, parse: Callable[[bytes], Parsed], body: bytes) -> Parsed:
        """Return ``parse(body)``."""
        if len(body) <= AT_ONCE:
            return parse(body)
        async with self._turn:
            return await asyncio.to_thread(parse, body)
