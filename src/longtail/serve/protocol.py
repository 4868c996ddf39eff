"""Connections: what a client may take before it has said who it is.

uvicorn reads and writes HTTP; around it stands a watch over every connection:

    the head of a request   must be there in ``header_seconds`` and have at most ``MOST_HEAD`` bytes
    between two requests    uvicorn's keep-alive time-out
    framing of a body       chunk sizes, extensions and trailers, may not outgrow the body
    an answer               the client must read some of it every ``write_seconds``
    all connections         at most ``max_connections``; for one more, the one that has been silent
                            the longest is closed, so that silent ones shut nobody out

At the end (``shutdown``) a connection without a request gets a moment more: its request may be on
the way.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from longtail.serve.settings import Settings

__all__ = ["limited_protocol"]

MOST_HEAD = 32_768  # bytes of request line and headers
TICK = 1.0  # seconds between two looks at a connection
GRACE = 0.5  # seconds for a request that may be on the way when the server ends
CLOSING = 5.0  # seconds for a client to take the rest, after which it is cut off
_FRAMING = 8  # bytes around each byte of a body

Base: Any = AutoHTTPProtocol  # whichever parser is installed


def limited_protocol(settings: Settings) -> type[Limited]:
    """Return the protocol class for a server with these settings."""
    return type("LimitedProtocol", (Limited,), {"settings": settings, "silent": {}})


class Limited(Base):  # type: ignore[misc]
    """A connection under watch."""

    settings: Settings
    silent: dict[Limited, None]  # connections of this process without a request, oldest first

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._since = self._moved = self.loop.time()  # of the silence; of the last byte written
        self._unsent = 0
        self._head = 0  # bytes of a head that is not complete
        self._framing = self._body = 0
        self._leaving = False
        self._watching = self.loop.call_later(TICK, self._watch)
        if len(self.connections) > self.settings.max_connections:
            self._make_room()
        self.silent[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._watching.cancel()
        self.silent.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._waiting() and not self._head:
            self._since = self.loop.time()
        self._framing += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._waiting():
            self._head += len(data)
            if self._head > MOST_HEAD:
                self._refuse(b"431 Request Header Fields Too Large")
        else:
            self._head = 0
            self.silent.pop(self, None)
            if self._leaving:
                self.cycle.keep_alive = False
            if self._counts_bodies and self._framing > MOST_HEAD + _FRAMING * self._body:
                self._refuse(b"400 Bad Request")

    # Callbacks of httptools; h11 bounds the framing by itself.
    _counts_bodies = hasattr(Base, "on_body")

    def on_message_begin(self) -> None:
        self._framing = self._body = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        self._framing -= len(body)
        if not self.transport.is_closing():
            super().on_body(body)

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(a) + len(b) + 4 for a, b in self.headers) > MOST_HEAD:
            self._refuse(b"431 Request Header Fields Too Large")  # it came in one packet
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()
        if self._waiting() and not self.transport.is_closing():
            self.silent[self] = None

    def shutdown(self) -> None:
        if not self._waiting():
            super().shutdown()
            return
        self._leaving = True
        self.loop.call_later(GRACE, self._leave)

    def _leave(self) -> None:
        if self._waiting():
            self.transport.close()

    def _waiting(self) -> bool:
        """Return whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._moved = now
        self._unsent = unsent
        closing = self.transport.is_closing()
        if now - self._moved > (CLOSING if closing else self.settings.write_seconds):
            self.transport.abort()
            return
        unfinished = self.cycle is None or self._head
        late = now - self._since > self.settings.header_seconds
        if not closing and self._waiting() and unfinished and late:
            self.transport.close()
        self._watching = self.loop.call_later(TICK, self._watch)

    def _make_room(self) -> None:
        """Close the connection that has been silent the longest, or this one if none is silent."""
        oldest = next(iter(self.silent), None)
        if oldest is None:
            self._refuse(b"503 Service Unavailable")
        else:
            del self.silent[oldest]
            self.connections.discard(oldest)
            oldest.transport.abort()

    def _refuse(self, status: bytes) -> None:
        if not self.transport.is_closing():
            head = b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            self.transport.write(head)
            self.transport.close()
