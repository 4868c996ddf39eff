"""Worker processes on one socket: replaced when they die, ended together.

A worker holds one end of a pipe and the supervisor the other. When the supervisor is gone, however
it ended, the pipe breaks and the worker ends too, after the requests it has.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import socket
import threading
import time
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from longtail.serve.settings import Settings

__all__ = ["supervise"]

_PATIENCE = 20.0  # seconds for a worker to end
_PAUSE = 1.0  # seconds before a worker that died young is replaced


class _Worker:
    def __init__(self, settings: Settings, listening: socket.socket) -> None:
        context = multiprocessing.get_context("spawn")
        self.alive, theirs = context.Pipe(duplex=False)[::-1]  # ours to hold, theirs to watch
        self.started = time.monotonic()
        self.process: BaseProcess = context.Process(
            target=_work, args=(settings, listening, theirs)
        )
        self.process.start()
        theirs.close()


def supervise(settings: Settings, listening: socket.socket, n_workers: int) -> None:
    """Run workers until SIGTERM or SIGINT; the latter is raised as ``KeyboardInterrupt``."""
    told, telling = multiprocessing.get_context("spawn").Pipe(duplex=False)
    signals: list[int] = []

    def stop(number: int, _: Any) -> None:
        signals.append(number)
        telling.send_bytes(b"stop")

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    workers = [_Worker(settings, listening) for _ in range(n_workers)]
    try:
        while not signals:
            wait([told, *(worker.process.sentinel for worker in workers)])
            for i, worker in enumerate(workers):
                if not signals and not worker.process.is_alive():
                    if time.monotonic() - worker.started < _PAUSE:
                        told.poll(_PAUSE)
                    workers[i] = _Worker(settings, listening)
    finally:
        for worker in workers:
            with contextlib.suppress(OSError):
                worker.process.terminate()
        deadline = time.monotonic() + _PATIENCE
        for worker in workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            worker.process.kill()
            worker.process.join()
        for number, handler in before.items():
            signal.signal(number, handler)
    if signal.SIGINT in signals:
        raise KeyboardInterrupt


def _work(settings: Settings, listening: socket.socket, alive: Connection) -> None:
    """Serve, as one worker process."""
    threading.Thread(target=_end_with, args=(alive, settings), daemon=True).start()
    from longtail.serve.server import make_server

    with contextlib.suppress(KeyboardInterrupt):
        make_server(settings).run(sockets=[listening])


def _end_with(alive: Connection, settings: Settings) -> None:
    """End this process once the supervisor is gone, and remove what that would have removed."""
    with contextlib.suppress(EOFError, OSError):
        alive.recv_bytes()  # nothing is ever sent
    if settings.copies is not None:
        shutil.rmtree(settings.copies, ignore_errors=True)
    if settings.counters is not None:
        with contextlib.suppress(OSError):
            os.unlink(settings.counters)
    os.kill(os.getpid(), signal.SIGTERM)
