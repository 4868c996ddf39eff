"""Worker processes on one socket: replaced when they die, ended together.

A worker holds one end of a pipe and the supervisor the other. When the supervisor is gone, however
it ended, the pipe breaks and the worker ends too, after the requests it has.

On Linux workers are forked from the supervisor, which has imported everything and loaded the model:
most of what an interpreter, its packages and the names of labels take in memory is there once for
all of them. Once there is a new model, the supervisor forgets the first one, and a worker that is
replaced loads the new one by itself. Where torch or ONNX Runtime was needed to load the model,
whose threads and devices do not survive a fork, each worker is a new interpreter.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from longtail.persist.mark import mark_of
from longtail.serve.holder import Loaded, settle
from longtail.serve.settings import Settings

__all__ = ["supervise"]

_PATIENCE = 20.0  # seconds for a worker to end
_PAUSE = 1.0  # seconds before a worker that died young is replaced
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_CANNOT_FORK = {"torch", "onnxruntime"}


class _Workers:
    """Starts worker processes. ``loaded``: a box with the model, or an empty one."""

    def __init__(self, settings: Settings, listening: socket.socket, loaded: list[Loaded]) -> None:
        self.settings, self.listening, self.loaded = settings, listening, loaded
        self.forks = sys.platform == "linux" and not _CANNOT_FORK & sys.modules.keys()
        self.context: Any = multiprocessing.get_context("fork" if self.forks else "spawn")
        self.running: list[_Worker] = []
        if not self.forks or settings.shards:  # connections to shards are a worker's own
            loaded.clear()
        if self.forks:
            import longtail.serve.server  # noqa: F401
        settle()

    def start(self) -> _Worker:
        alive, theirs = self.context.Pipe(duplex=False)[::-1]  # ours to hold, theirs to watch
        ours = [alive, *(worker.alive for worker in self.running)] if self.forks else []
        process = self.context.Process(
            target=_work, args=(self.settings, self.listening, theirs, ours, self.loaded)
        )
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until it has handlers of its own
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        theirs.close()
        return _Worker(process, alive)

    def forget(self) -> None:
        """Let go of the model once there is another."""
        if self.loaded and mark_of(self.settings.model) != self.loaded[0].mark:
            self.loaded.clear()
            settle(anew=True)


@dataclass
class _Worker:
    process: BaseProcess
    alive: Connection
    started: float = field(default_factory=time.monotonic)


def supervise(
    settings: Settings, listening: socket.socket, n_workers: int, loaded: list[Loaded]
) -> None:
    """Run workers until SIGTERM or SIGINT; the latter is raised as ``KeyboardInterrupt``.

    ``loaded``: a box with the model, which is emptied.
    """
    told, telling = multiprocessing.Pipe(duplex=False)
    signals: list[int] = []

    def stop(number: int, _: Any) -> None:
        signals.append(number)
        telling.send_bytes(b"stop")

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    new = _Workers(settings, listening, loaded)
    workers = new.running
    try:
        for _ in range(n_workers):
            workers.append(new.start())
        while not signals:
            watched = settings.reload_seconds if loaded else None
            wait([told, *(worker.process.sentinel for worker in workers)], watched or None)
            if settings.reload_seconds:
                new.forget()
            for i, worker in enumerate(workers):
                if not signals and not worker.process.is_alive():
                    if time.monotonic() - worker.started < _PAUSE:
                        told.poll(_PAUSE)
                    workers[i] = new.start()
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


def _work(
    settings: Settings,
    listening: socket.socket,
    alive: Connection,
    ends: list[Connection],
    loaded: list[Loaded],
) -> None:
    """Serve, as one worker process; ``ends``: those of the supervisor's pipes that a fork copies,
    which nobody else may keep open; ``loaded``: a box that may have the model.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    for end in ends:
        end.close()
    threading.Thread(target=_end_with, args=(alive, settings), daemon=True).start()
    from longtail.serve.server import make_server

    with contextlib.suppress(KeyboardInterrupt):
        make_server(settings, loaded.pop() if loaded else None).run(sockets=[listening])


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
