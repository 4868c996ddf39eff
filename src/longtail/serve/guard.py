"""What every request passes before the application sees it.

In this order: the name it was called by (``hosts``), how many requests the client has sent
(``rate``), whether a browser asks for another page (``cors``), the token (unless the path is open),
the size of the body (told by its header, then counted as it comes), the time it may take. The body
is read here, whole, so that the application never waits for a slow client. Whatever goes wrong
leaves as problem JSON, with the headers that keep a browser from misusing it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import anyio

from longtail.serve.cors import allows, cors_headers, is_preflight
from longtail.serve.counters import Counters
from longtail.serve.gone import Gone, Receive
from longtail.serve.hosts import allowed, default_hosts
from longtail.serve.logs import access
from longtail.serve.problems import problem_bytes, problem_headers
from longtail.serve.rate import RateLimit
from longtail.serve.settings import Settings

__all__ = ["Guard"]

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
# Content type, body, and what tells of a client that hangs up, to an ASGI response.
Answerer = Callable[[str, bytes, Receive], Awaitable[Any]]

_GONE = 499  # counted, never sent
# The page can be loaded without a token, and then asks for one; /docs is the same for every model.
_OPEN = ("/", "/docs", "/health")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_PAGE_POLICY = (
    b"default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; "
    b"base-uri 'none'; form-action 'none'"
)


class _Refused(Exception):
    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.detail, self.headers = status, detail, headers


class Guard:
    """ASGI middleware around the application."""

    def __init__(
        self,
        app: Any,
        settings: Settings,
        counters: Counters,
        direct: Mapping[tuple[str, str], Answerer] | None = None,
    ) -> None:
        """``direct``: what answers some (method, path), from content type and body, itself."""
        self.app = app
        self.direct = direct or {}
        self.settings = settings
        self.counters = counters
        self.hosts = default_hosts("localhost") if settings.hosts is None else settings.hosts
        self.rate = None if settings.rate is None else RateLimit(settings.rate)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0
        crossing = cors_headers(scope, self.settings.origins)

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name.lower() for name, _ in message.get("headers", ())}
                extra = [pair for pair in _HEADERS if pair[0] not in own] + crossing
                if b"content-security-policy" not in own:
                    extra.append((b"content-security-policy", _PAGE_POLICY))
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        try:
            self._check_host(scope)
            self._check_rate(scope)
            if allows(crossing) and is_preflight(scope):
                await counted({"type": "http.response.start", "status": 204, "headers": []})
                await counted({"type": "http.response.body", "body": b""})
                return
            self._check_token(scope)
            with anyio.fail_after(self.settings.timeout):
                await self._serve(scope, receive, counted)
        except _Refused as refused:
            await _refuse(counted, refused)
        except Gone:
            status = _GONE
        except TimeoutError:
            self.counters.add("timeouts")
            if not status:
                await _refuse(counted, _Refused(503, "this took too long; try again later"))
        except Exception:
            log.exception("request failed")
            if not status:
                await _refuse(counted, _Refused(500, "something went wrong here"))
        finally:
            seconds = time.perf_counter() - began
            self.counters.request(scope["path"], status or 500, seconds)
            # uvloop sends the answer when this task lets go of it: the line is written after that.
            asyncio.get_running_loop().call_soon(access, scope, status or 500, seconds)

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        body = await self._read(scope, receive)
        if body is None:  # the client has gone
            return
        answer = self.direct.get((scope["method"], scope["path"]))
        if answer is None:
            await self.app(scope, _replay(body, receive), send)
            return
        kind = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
        response = await answer(kind, body, receive)
        await response(scope, receive, send)

    def _check_host(self, scope: Message) -> None:
        for name, value in scope["headers"]:
            if name == b"host" and not allowed(value.decode("latin-1"), self.hosts):
                raise _Refused(
                    421,
                    f"this server does not answer to {value.decode('latin-1')[:100]!r}: "
                    "start it with --allowed-host NAME",
                )

    def _check_rate(self, scope: Message) -> None:
        if self.rate is None or scope["path"] == "/health":
            return
        wait = self.rate.wait((scope.get("client") or ("",))[0])
        if wait:
            self.counters.add("refused")
            again = {"retry-after": str(math.ceil(wait))}
            raise _Refused(429, f"more than {self.settings.rate:g} requests a second", again)

    def _check_token(self, scope: Message) -> None:
        path = scope["path"]
        if self.settings.token is None or path in _OPEN or path.startswith("/static/"):
            return
        wanted = b"Bearer " + self.settings.token.encode("utf-8")
        given = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(given, wanted):
            raise _Refused(401, "a bearer token is needed", {"www-authenticate": "Bearer"})

    async def _read(self, scope: Message, receive: Receive) -> bytes | None:
        most = self.settings.max_body
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if told.isdigit() and (len(told) > 18 or int(told) > most):
            raise _Refused(413, f"the request is larger than {most:,} bytes")
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise _Refused(413, f"the request is larger than {most:,} bytes")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return the body once, and then whatever the connection says."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(send: Send, refused: _Refused) -> None:
    body = problem_bytes(refused.status, refused.detail)
    headers = problem_headers(body, {"connection": "close", **(refused.headers or {})})
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
