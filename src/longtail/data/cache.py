"""Where downloaded data sets live, and a lock that one process at a time can hold.

cache_dir()/
  datasets/NAME/        one folder per data set, complete as soon as it exists
  downloads/FILE        archives on their way in; FILE.part and FILE.part.json while unfinished
  locks/NAME.lock       empty files, locked by the operating system while a process fetches NAME
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = ["cache_dir", "locked"]


def cache_dir() -> Path:
    """Return the cache folder: ``LONGTAIL_CACHE`` if it is set, otherwise the platform's usual
    place.

    That is ``$XDG_CACHE_HOME/longtail`` or ``~/.cache/longtail`` on Linux, ``~/Library/Caches/
    longtail`` on macOS and ``%LOCALAPPDATA%\\longtail`` on Windows. It is not created here.
    """
    chosen = os.environ.get("LONGTAIL_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "longtail"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "longtail"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path is invalid and must be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "longtail"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file ``path`` (created if need be), waiting for others.

    The operating system drops the lock when the holder ends, however it ends, so a killed process
    leaves nothing to clean up. The file itself stays: removing it would let two processes lock two
    different files of the same name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        _acquire(file)
        try:
            yield
        finally:
            _release(file)


if sys.platform == "win32":
    import msvcrt

    def _acquire(file: IO[bytes]) -> None:
        while True:
            file.seek(0)
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                return
            except OSError:
                time.sleep(0.1)

    def _release(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(file: IO[bytes]) -> None:
        # Polled rather than blocking, so that Ctrl-C is noticed while another process downloads.
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(0.1)

    def _release(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
