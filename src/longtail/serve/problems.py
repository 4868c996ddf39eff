"""Errors as problem JSON (RFC 9457): one shape for all of them, and nothing echoed unescaped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

__all__ = ["TYPE", "problem_bytes", "problem_headers"]

TYPE = "application/problem+json"


def problem_bytes(status: int, detail: str, **more: Any) -> bytes:
    """Return the body of an error. ASCII only: what a client sent may hold half a character."""
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return json.dumps(body, ensure_ascii=True, allow_nan=False, default=str).encode("ascii")


def problem_headers(
    body: bytes, extra: Mapping[str, str] | None = None
) -> list[tuple[bytes, bytes]]:
    """Return headers of such an answer, as ASGI wants them."""
    headers = {"content-type": TYPE, "content-length": str(len(body)), **(extra or {})}
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
