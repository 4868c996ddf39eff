"""``mark_of``: what tells one state of a saved model's folder from the next."""

from __future__ import annotations

import os

__all__ = ["Mark", "mark_of"]

Mark = tuple[tuple[str, int, int, int], ...]


def mark_of(path: str) -> Mark | None:
    """Return what tells one state of a folder from the next: names, numbers, times and sizes of its
    files.

    None where there is no folder.
    """
    try:
        with os.scandir(path) as entries:
            found = [(entry.name, entry.stat()) for entry in entries]
    except OSError:
        return None
    return tuple(
        sorted((name, stat.st_ino, stat.st_mtime_ns, stat.st_size) for name, stat in found)
    )
