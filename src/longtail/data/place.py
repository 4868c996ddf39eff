"""Where a record stands, and how to say that something is wrong there."""

from __future__ import annotations

import reprlib
from typing import NamedTuple

from longtail.exceptions import DataFormatError

__all__ = ["Place", "brief"]

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


class Place(NamedTuple):
    """A line of a text file (from 1), or a row (from 0) of a table without lines."""

    path: str
    line: int | None = None
    row: int | None = None

    def error(self, message: str, column: int | None = None) -> DataFormatError:
        """Return a format error at this place."""
        if self.row is not None:
            message = f"row {self.row}: {message}"
        return DataFormatError(message, path=self.path, line=self.line, column=column)


def brief(value: object) -> str:
    """Return ``repr`` for error messages: whatever a file holds, it takes a line at most.

    >>> len(brief("a" * 1000))
    60
    """
    return _short.repr(value)
