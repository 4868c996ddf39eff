"""The server process, or several that share the model's pages."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from dataclasses import replace
from typing import Any

from longtail.exceptions import MissingDependencyError
from longtail.serve.counters import make_file
from longtail.serve.settings import Settings

__all__ = ["run"]


def run(settings: Settings, *, host: str = "127.0.0.1", port: int = 8000, workers: int = 1) -> None:
    """Serves until interrupted. Needs the extra "serve".

    Refuses, before it listens, a model that cannot be loaded and a port that is taken. With several
    ``workers``, one that dies is replaced. Listening on another address than loopback without a
    token is allowed, and said aloud.
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError as error:
        missing = error.name or "fastapi"
        raise MissingDependencyError(missing, "serve", "longtail serve") from None
    from longtail.serve.holder import load_model

    loaded = load_model(settings.model)
    if workers > 1:
        settings = replace(settings, counters=make_file())
    settings.put_in_environment()
    config = uvicorn.Config(
        "longtail.serve.app:from_environment",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        access_log=False,
        log_level="warning",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        limit_concurrency=2000,
        server_header=False,
    )
    try:
        socket = config.bind_socket()
    except SystemExit:  # it has logged why, in a line of its own
        raise OSError(f"cannot listen on {host}:{port}: is the port taken?") from None
    shown = f"[{host}]" if ":" in host else host
    n_labels = len(loaded.tagger.label_names)
    del loaded
    address = f"http://{shown}:{socket.getsockname()[1]}"
    print(f"{settings.model}: {n_labels:,} labels, at {address} (Ctrl-C stops)", file=sys.stderr)
    if host not in ("127.0.0.1", "::1", "localhost") and settings.token is None:
        print("anybody who can reach this address may ask: consider --token", file=sys.stderr)
    sys.stderr.flush()
    try:
        if workers > 1:
            _supervise(uvicorn, config, socket)
        else:
            uvicorn.Server(config).run(sockets=[socket])
    finally:
        socket.close()
        if settings.counters is not None:
            with contextlib.suppress(OSError):
                os.unlink(settings.counters)


def _supervise(uvicorn: Any, config: Any, socket: Any) -> None:
    """Worker processes, replaced when they die."""
    from uvicorn.supervisors import Multiprocess

    more = {}
    if "target" in inspect.signature(Multiprocess).parameters:  # older versions ask for it
        more["target"] = uvicorn.Server(config).run
    Multiprocess(config, sockets=[socket], **more).run()
