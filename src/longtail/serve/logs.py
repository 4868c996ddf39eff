"""What the service writes to standard error: a line per request, and a line per new model.

    2026-11-16T07:20:01Z 127.0.0.1 POST /predict 200 3.1 ms

No text, token or query is written. Lines go through a queue to a thread of their own, and are
dropped where it is full: a terminal that has been stopped, or a pipe that nobody reads, never holds
up an answer.
"""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import queue
import re
import time
from typing import Any

__all__ = ["access", "start_logs", "stop_logs"]

_WAITING = 10_000  # lines
_ODD = re.compile(r"[^\x21-\x7e]")
_QUIET = ("/health",)  # asked every few seconds, by machines

log = logging.getLogger("longtail.serve")
_access = logging.getLogger("longtail.serve.access")


def access(scope: Any, status: int, seconds: float) -> None:
    """Log a request that has been answered; health checks that went well are left out."""
    if not _access.isEnabledFor(logging.INFO) or (scope["path"] in _QUIET and status < 400):
        return
    client = (scope.get("client") or ("-",))[0]
    path = _ODD.sub("?", scope["path"][:200])  # without what was searched for
    _access.info("%s %s %s %d %.1f ms", client, scope["method"][:16], path, status, 1000 * seconds)


class _Dropping(logging.handlers.QueueHandler):
    def enqueue(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(queue.Full):
            self.queue.put_nowait(record)


def start_logs() -> logging.handlers.QueueListener:
    """Begin to write; returns what ``stop_logs`` takes."""
    shown = logging.StreamHandler()
    form = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    form.converter = time.gmtime
    shown.setFormatter(form)
    lines: queue.Queue[logging.LogRecord] = queue.Queue(_WAITING)
    handler = _Dropping(lines)
    listener = logging.handlers.QueueListener(lines, shown)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    listener.start()
    return listener


def stop_logs(listener: logging.handlers.QueueListener) -> None:
    """Write what waits, and stop."""
    for handler in [h for h in log.handlers if isinstance(h, _Dropping)]:
        log.removeHandler(handler)
    listener.stop()
