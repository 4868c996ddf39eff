"""What workers run in the tests; they import it by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from longtail.linear.train import elsewhere

TRAIN = elsewhere._train


def leave(folder: str, name: str, *, watch: Callable[[], None]) -> None:
    """Leave a part, and write down who did it."""
    with (Path(folder) / f"by-{name}").open("a") as file:
        file.write(f"{os.getpid()}\n")
    (Path(folder) / name).mkdir(exist_ok=True)


def fail(folder: str, name: str, *, watch: Callable[[], None]) -> None:
    raise OSError(28, "No space left on device", f"{folder}/{name}")


def wait(folder: str, name: str, *, watch: Callable[[], None]) -> None:
    """Work for a minute, or until told to stop."""
    begun = time.monotonic()
    (Path(folder) / f"begun-{name}").touch()
    while time.monotonic() - begun < 60:
        watch()
        time.sleep(0.05)
    (Path(folder) / name).mkdir()


def wait_for(folder: str, name: str, others: list[str], *, watch: Callable[[], None]) -> None:
    """Leave a part once all others are there: a worker that is slow."""
    begun = time.monotonic()
    while not all((Path(folder) / other).is_dir() for other in others):
        assert time.monotonic() - begun < 60, "the others wait for this one"
        watch()
        time.sleep(0.05)
    leave(folder, name, watch=watch)


def die_once(folder: str, name: str, *, watch: Callable[[], None]) -> None:
    """End the process the first time, as a machine that is lost; leave a part the second time."""
    _die_first(Path(folder) / f"died-{name}")
    leave(folder, name, watch=watch)


def die(folder: str, name: str, *, watch: Callable[[], None]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def vanish(folder: str, name: str, *, watch: Callable[[], None]) -> None:
    """Leave nothing, as on a machine that writes to a disk of its own."""


def train_or_die(shared: Any, name: str, part: Any, *args: Any, watch: Callable[[], None]) -> None:
    """Train a part; the process that comes to the second part first is lost."""
    if part.first > 0:
        _die_first(Path(shared.folder) / "died")
    TRAIN(shared, name, part, *args, watch=watch)


def _die_first(mark: Path) -> None:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
