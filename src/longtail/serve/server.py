"""uvicorn's server, set up for a model, that loses no request when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import sys
from typing import Any

import uvicorn

from longtail.serve.app import create_app
from longtail.serve.holder import Loaded
from longtail.serve.protocol import limited_protocol
from longtail.serve.settings import Settings

__all__ = ["make_server"]

_DRAIN = 0.25  # seconds in which connections that the kernel has accepted are taken from it
_SO_ATTACH_FILTER = 26


def make_server(settings: Settings, loaded: Loaded | None = None) -> uvicorn.Server:
    """Return a server that is ready to run on sockets; load the model, unless it is ``loaded``."""
    # Between the thread that asks the model and the one that talks to clients: the usual five
    # milliseconds would be waited for several times in a request, whenever something is explained.
    sys.setswitchinterval(0.0005)
    config = uvicorn.Config(
        create_app(settings, loaded),
        http=limited_protocol(settings),
        ws="none",
        access_log=False,
        log_level="warning",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        server_header=False,
        backlog=4096,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no new connections, serve those that were made before, and then end."""
        for listening in sockets or ():
            _ignore_newcomers(listening)
        await asyncio.sleep(_DRAIN)
        await super().shutdown(sockets)


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filters", ctypes.POINTER(_Filter)))


def _ignore_newcomers(listening: socket.socket) -> None:
    """Drop packets that open a connection, on Linux: closing a socket resets the connections that
    nobody has taken from it yet, so there must be none. Elsewhere a few may be lost.
    """
    if sys.platform != "linux":
        return
    steps: Any = (
        (0x30, 0, 0, 13),  # A = byte 13 of the TCP header, the flags
        (0x45, 0, 1, 0x02),  # SYN?
        (0x06, 0, 0, 0),  # then drop the packet,
        (0x06, 0, 0, 0xFFFFFFFF),  # else keep all of it
    )
    filters = (_Filter * len(steps))(*steps)
    program = _Program(len(steps), filters)
    with contextlib.suppress(OSError):  # not allowed here
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(program))
