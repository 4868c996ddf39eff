"""Finished parts of a training beside the model to be, so that the same command goes on with them.

``model.unfinished`` exists while ``model`` is being trained, and afterwards only if the training
was cut short (Ctrl-C, ``kill -9``, a power failure). Parts are written whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from longtail.cli.output import note

__all__ = ["MEASURING", "resumable", "unfinished"]

Result = TypeVar("Result")
_LOCK = ".lock"
MEASURING = "measuring"  # parts of the model that is measured, where another one is saved


@contextlib.contextmanager
def unfinished(output: Path) -> Iterator[Path]:
    """Yield the folder of parts for the model ``output``; removed when the block ends well.

    Refuses a folder that another training is writing to, and one that holds anything else.
    """
    from longtail.tagger.fitting import PARTS

    whole = Path(os.path.abspath(output))
    folder = whole.with_name(f"{whole.name}.unfinished")
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.name not in (*PARTS, MEASURING, _LOCK):  # it would be removed in the end
            raise ValueError(f"{entry} is no part of a training: choose another folder for -o")
    with open(folder / _LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(
                f"another training of {output} is under way: wait for it, or choose another folder"
            ) from None
        if _has_parts(folder):
            note(f"going on with what is in {folder}")
        try:
            yield folder
        except KeyboardInterrupt:
            if _has_parts(folder):
                note(f"what was finished is in {folder}: the same command goes on from there")
            raise
        finally:
            if not _has_parts(folder):
                shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def resumable(train: Callable[[Path], Result], folder: Path) -> Result:
    """Call ``train(folder)``; where the folder is for other data or options, begin anew."""
    from longtail.linear.train.checkpoint import OtherTraining

    try:
        return train(folder)
    except OtherTraining:
        note("the data or the options have changed since then: starting anew")
        for entry in _parts(folder):
            shutil.rmtree(entry)
        return train(folder)


def _parts(folder: Path) -> list[Any]:
    return [entry for entry in folder.iterdir() if entry.name != _LOCK] if folder.exists() else []


def _has_parts(folder: Path) -> bool:
    return bool(_parts(folder))
