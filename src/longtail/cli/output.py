"""Notes for people on standard error, results on standard output, and files that are not in use."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

__all__ = ["check_free", "check_writable", "note", "print_json"]


def note(text: str) -> None:
    """Print a line for the person at the terminal; standard output stays for results."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def check_free(folder: Path, overwrite: bool) -> None:
    """Refuse a folder with something in it, before the work and not after it."""
    if folder.exists() and not overwrite and any(folder.iterdir() if folder.is_dir() else [1]):
        raise FileExistsError(f"{folder} exists: choose another folder, or pass --overwrite")
    above = next(p for p in Path(os.path.abspath(folder)).parents if p.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise PermissionError(f"{folder} cannot be written: {above} is no folder to write to")


def check_writable(path: str | os.PathLike[str] | None, flag: str) -> None:
    """Refuse a file that could not be written, before the work and not after it."""
    if path is None:
        return
    target = Path(os.path.abspath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{flag} {path} is a folder: give the name of a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{flag} {path}: there is no folder {target.parent}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise PermissionError(f"{flag} {path} cannot be written")
