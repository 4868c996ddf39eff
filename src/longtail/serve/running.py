"""The server process, or several that share the model's pages."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import socket
import sys
import tempfile
from dataclasses import replace

from longtail.exceptions import MissingDependencyError
from longtail.serve.counters import make_file
from longtail.serve.hosts import default_hosts, is_loopback
from longtail.serve.settings import Settings

__all__ = ["run"]

_SPARE = 100  # descriptors for other things than connections


def run(settings: Settings, *, host: str = "127.0.0.1", port: int = 8000, workers: int = 1) -> None:
    """Serve until interrupted. Needs the extra "serve".

    Refuses, before it listens, a model that cannot be loaded and a port that is taken. With several
    ``workers``, one that dies is replaced. Listening on another address than loopback without a
    token is allowed, and said aloud.

    Parameters
    ----------
    settings : Settings
        What to serve, and how.
    host : str, default="127.0.0.1"
        Address to listen on.
    port : int, default=8000
        Port to listen on.
    workers : int, default=1
        Number of processes.
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        missing = error.name or "fastapi"
        raise MissingDependencyError(missing, "serve", "longtail serve") from None
    from longtail.serve.holder import load_model, n_labels_of
    from longtail.serve.server import make_server
    from longtail.serve.supervisor import supervise

    loaded = [load_model(settings)]  # in a box, for whoever serves it to take out
    n_labels = n_labels_of(loaded[0].tagger)
    listening = _listen(host, port)
    if settings.hosts is None:
        settings = replace(settings, hosts=default_hosts(host))
    if workers > 1:
        copies = tempfile.mkdtemp(prefix="longtail-models-")
        settings = replace(settings, n_workers=workers, counters=make_file(), copies=copies)
    settings = replace(
        settings,
        max_connections=min(settings.max_connections, _descriptors() - _SPARE),
    )
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"
    print(f"{settings.model}: {n_labels:,} labels, at {address} (Ctrl-C stops)", file=sys.stderr)
    if not is_loopback(host) and settings.token is None:
        print("anybody who can reach this address may ask: consider --token", file=sys.stderr)
    sys.stderr.flush()
    try:
        if workers > 1:
            supervise(settings, listening, workers, loaded)
        else:
            make_server(settings, loaded.pop()).run(sockets=[listening])
    finally:
        listening.close()
        if settings.counters is not None:
            with contextlib.suppress(OSError):
                os.unlink(settings.counters)
        if settings.copies is not None:
            shutil.rmtree(settings.copies, ignore_errors=True)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
            listening.set_inheritable(True)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        raise OSError(f"cannot listen on {host}:{port}: is the port taken? ({error})") from None
    return listening


def _descriptors() -> int:
    """As many open files as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft if soft != resource.RLIM_INFINITY else 1 << 20
