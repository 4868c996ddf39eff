"""Journals of finished runs: one JSON line each, and none is made twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Journal", "means"]


class Journal:
    """Lines of a file; runs are told apart by the values of ``keys``."""

    def __init__(self, path: Path, keys: Sequence[str] = ("data", "setting", "seed")) -> None:
        self.path, self.keys = path, keys
        self.done = {self._key(record) for record in self.records()}

    def records(self) -> list[dict[str, Any]]:
        """Return all lines so far."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [json.loads(line) for line in lines]

    def has(self, about: dict[str, Any]) -> bool:
        """Say whether a run was finished before this journal was opened."""
        return self._key(about) in self.done

    def write(self, record: dict[str, Any]) -> None:
        """Print a finished run and keep it."""
        print(json.dumps(record), flush=True)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def groups(self, keys: Iterable[str], having: str) -> dict[tuple[Any, ...], list[Any]]:
        """Return the runs that have a value, by the values of some keys: seeds side by side."""
        keys, out = list(keys), {}
        for record in self.records():
            if having in record:
                out.setdefault(tuple(record[key] for key in keys), []).append(record)
        return out

    def _key(self, record: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(record.get(key) for key in self.keys)


def means(records: list[dict[str, Any]], name: str, digits: int = 1) -> str:
    """Return the mean of a value over runs; of a list of values, joined by slashes."""
    found = np.mean([record[name] for record in records], axis=0)
    return "/".join(f"{value:,.{digits}f}" for value in np.atleast_1d(found))
