"""A JSON answer that is sent as it is made, so that a large one neither fills the memory nor keeps
other requests waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from longtail.serve.gone import until_gone

__all__ = ["Streamed"]

_TYPE = (b"content-type", b"application/json")


class Streamed:
    """An ASGI response of chunks; a single one is sent with its length."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.chunks = chunks

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        chunk, following = next(self.chunks), next(self.chunks, None)
        headers = [_TYPE]
        if following is None:
            headers.append((b"content-length", str(len(chunk)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if following is None:
            await send({"type": "http.response.body", "body": chunk})
        else:
            await until_gone(self._send(chunk, following, send), receive)

    async def _send(self, chunk: bytes, following: bytes | None, send: Any) -> None:
        while following is not None:
            # ``send`` waits for a client that reads slowly, and this for everybody else.
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await asyncio.sleep(0)
            chunk, following = following, next(self.chunks, None)
        await send({"type": "http.response.body", "body": chunk})
