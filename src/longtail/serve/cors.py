"""Pages of other origins that may ask: the headers that tell a browser so (CORS).

Without an option no such header is sent, and no other page can read an answer. The token is sent by
scripts in a header of their own, never by the browser by itself, so credentials are not allowed.
"""

from __future__ import annotations

from typing import Any

__all__ = ["allows", "cors_headers", "is_preflight"]

_ALLOWED = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
]


def cors_headers(scope: Any, origins: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    """Return headers for the answer to a page of an allowed origin; none for any other request."""
    if not origins:
        return []
    asked = dict(scope["headers"]).get(b"origin")
    if asked is None or not ("*" in origins or asked.decode("latin-1") in origins):
        return [(b"vary", b"origin")]
    allowed = [(b"access-control-allow-origin", asked), (b"vary", b"origin")]
    return [*allowed, *_ALLOWED] if is_preflight(scope) else allowed


def allows(headers: list[tuple[bytes, bytes]]) -> bool:
    """Return whether these headers let the page of another origin ask."""
    return any(name == b"access-control-allow-origin" for name, _ in headers)


def is_preflight(scope: Any) -> bool:
    """Return whether a browser asks if a script may ask."""
    names = {name for name, _ in scope["headers"]}
    return (
        scope["method"] == "OPTIONS"
        and b"origin" in names
        and b"access-control-request-method" in names
    )
