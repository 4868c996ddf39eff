"""Progress of long work: one line on a terminal, nothing elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time

__all__ = ["Progress", "tell"]

log = logging.getLogger("longtail")


def tell(what: object) -> None:
    """Log something, and print it where standard error is a terminal."""
    log.info("%s", what)
    if sys.stderr is not None and sys.stderr.isatty():
        print(what, file=sys.stderr, flush=True)


class Progress:
    """Called as ``progress(done, total, told)``; draws at most ten times a second, after the first.

    Nothing is shown for work shorter than a second, nor when standard error is no terminal.

    Parameters
    ----------
    what : str
        The work, in front of the line.
    start : int
        How much was done before, in the unit of ``done``: by an earlier run.
    stop : threading.Event or None
        A call after it was set raises KeyboardInterrupt: signals reach the main thread only, and
        this is how it passes them on.
    """

    def __init__(self, what: str, *, start: int = 0, stop: threading.Event | None = None) -> None:
        self.what = what
        self.start = start
        self.stop = stop
        self.began = time.monotonic()
        self.shown = 0.0
        self.on = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: int, total: int, told: str = "") -> None:
        """Show how much is done, unless that was shown just now; ``total`` is 0 if unknown."""
        if self.stop is not None and self.stop.is_set():
            raise KeyboardInterrupt
        now = time.monotonic()
        if not self.on or now - self.began < 1 or now - self.shown < 0.1:
            return
        self.shown = now
        parts = [self.what]
        if total > 0:
            new, rest = done - self.start, max(total - done, 0)
            left = (now - self.began) * rest / new if new > 0 else 0.0
            parts += [
                f"{min(done / total, 1.0):4.0%}",
                f"{int(left // 60)}:{int(left % 60):02d} left",
            ]
        line = "  ".join([*parts, *([told] if told else [])])
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *exc: object) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
