"""``Lease``: a file that tells tasks on other machines to go on, and to stop by its absence.

Engines differ in what they can do about a task that is running: some end its process, some let it
finish. Whoever works for a training looks for its lease about once a second instead.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

__all__ = ["Lease", "Stopped"]

_PREFIX = "running-"
_PATIENCE = 1.0  # seconds between two looks at the file


class Stopped(Exception):
    """The training that a task works for has ended, or its folder is not seen from here."""


class Lease:
    """A file of its own name in ``folder``, there from ``begin`` to ``end``.

    Plain data that travels with a task; ``check`` is called on either side.

    >>> import tempfile
    >>> lease = Lease.begin(tempfile.mkdtemp())
    >>> lease.check()
    >>> lease.end()
    >>> lease.held
    False
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._looked = 0.0

    @classmethod
    def begin(cls, folder: str | os.PathLike[str]) -> Lease:
        path = Path(folder).absolute() / f"{_PREFIX}{secrets.token_hex(6)}"
        path.touch(exist_ok=False)
        return cls(str(path))

    @property
    def held(self) -> bool:
        return os.path.exists(self.path)

    def check(self) -> None:
        """Raise ``Stopped`` once the file is gone; looks for it at most once a second."""
        now = time.monotonic()
        if now - self._looked < _PATIENCE:
            return
        if not self.held:
            raise Stopped(f"{self.path} is not there")
        self._looked = now

    def end(self) -> None:
        """Remove the file, if nobody has done so yet."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    @staticmethod
    def end_all(folder: str | os.PathLike[str]) -> None:
        """Remove every lease in the folder."""
        for path in Path(folder).glob(f"{_PREFIX}*"):
            path.unlink(missing_ok=True)

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "_looked": 0.0}  # clocks of machines have nothing in common
