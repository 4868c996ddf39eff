"""Finished parts of a training, on disk, so that a run that was cut short goes on where it was.

A folder with one saved part per directory (``longtail.persist``: whole or absent) and
``problem.json``, the fingerprint of what is being trained. Parts hold bits, so a resumed training
ends with the weights of one that was never interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from longtail import persist
from longtail.exceptions import ModelFormatError
from longtail.persist.siblings import remove, sweep

__all__ = ["Checkpoint", "OtherTraining", "fingerprint"]

_BLOCK = 1 << 24
Part = TypeVar("Part")


class OtherTraining(ValueError):
    """A folder holds parts of a training with other data, parameters or version."""


class Checkpoint:
    """Parts by name under ``path``, which is made if it does not exist.

    Refuses a folder that holds another training (other data, parameters or version), or anything
    else.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        self.path = Path(path)
        self.problem = problem
        self.path.mkdir(parents=True, exist_ok=True)
        note = self.path / "problem.json"
        if note.exists():
            if _held(note) != problem:
                raise OtherTraining(
                    f"{self.path} holds parts of another training (other data, parameters or "
                    "version): name another folder, or delete this one"
                )
            return
        if any(not entry.name.startswith(".") for entry in self.path.iterdir()):
            raise ValueError(f"{self.path} is not empty and holds no training: name another folder")
        draft = self.path / f".problem-{os.getpid()}"
        draft.write_text(json.dumps({"fingerprint": problem}))
        os.replace(draft, note)

    def load(self, name: str, read: Callable[[persist.State], Part]) -> Part | None:
        """Return what ``read`` makes of the part saved as ``name``, every byte checked, or None.

        A part that is damaged is removed, with a warning, and counts as not there: it is trained
        again.
        """
        path = self.path / name
        sweep(os.path.realpath(path))  # what a killed run left: loading would wait for it to finish
        try:
            return read(persist.load(path, mmap=False, verify=True))
        except FileNotFoundError:
            return None
        except ModelFormatError as error:
            warnings.warn(f"a damaged part is trained again: {error}", stacklevel=2)
            remove(os.path.realpath(path))
            return None

    def save(self, name: str, state: persist.State) -> None:
        persist.save(self.path / name, state, overwrite=True)


def _held(note: Path) -> Any:
    """Return the fingerprint in the file; None where a failure of power left none in it."""
    try:
        return json.loads(note.read_text())["fingerprint"]
    except (KeyError, TypeError, ValueError):
        return None


def fingerprint(arrays: Iterable[np.ndarray | None], settings: dict[str, Any]) -> str:
    """Digest of everything the weights depend on; arrays are read in blocks."""
    digest = hashlib.blake2b(json.dumps(settings, sort_keys=True, default=_described).encode())
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        flat = array.reshape(-1)
        step = max(1, _BLOCK // max(array.itemsize, 1))
        for begin in range(0, flat.size, step):
            digest.update(np.ascontiguousarray(flat[begin : begin + step]).data)
    return digest.hexdigest()


def _described(value: Any) -> Any:
    """Describe what JSON does not know; arrays in full, of which ``repr`` leaves out the middle."""
    return value.tolist() if isinstance(value, np.ndarray) else repr(value)
