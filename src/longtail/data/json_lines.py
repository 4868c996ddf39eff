"""JSON Lines: one JSON object per line, UTF-8, plain or gzip; blank lines are skipped."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from longtail._lines import FilePath, read_lines, write_lines
from longtail.data.place import Place, brief

__all__ = ["parse_record", "read_json_lines", "write_json_lines"]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json_lines(path: FilePath) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, object)``, one record in memory at a time."""
    name = os.fspath(path)
    for number, line in read_lines(path):
        if line and not line.isspace():
            yield number, parse_record(line, Place(name, number))


def parse_record(line: str, place: Place) -> dict[str, Any]:
    """Return the object of one line.

    Refuses a line that is not a JSON object, and strings with a lone surrogate (half a character,
    which no UTF-8 file can hold).
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        message, column = getattr(error, "msg", str(error)), getattr(error, "colno", None)
        raise place.error(f"expected a JSON object: {message}", column) from None
    if not isinstance(record, dict):
        raise place.error(f"expected a JSON object on every line, got {brief(line)}")
    # Halves of a pair are joined by the parser; only what is left alone cannot be encoded.
    if "\\u" in line and _SURROGATE.search(line) and not _is_unicode(record):
        raise place.error("a string holds half of a surrogate pair (\\ud800 to \\udfff)")
    return record


def write_json_lines(path: FilePath, records: Iterable[dict[str, Any]]) -> None:
    """Write each record as one line; gzip where the name ends in ``.gz``."""
    write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records))


def _is_unicode(record: dict[str, Any]) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
