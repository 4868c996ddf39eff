"""Problems as responses of the framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.responses import Response

from longtail.serve.problems import TYPE, problem_bytes

__all__ = ["invalid", "refusal"]


def refusal(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return problem JSON with this status."""
    body = problem_bytes(status, detail)
    return Response(body, status, dict(headers or {}), media_type=TYPE)


def invalid(errors: Sequence[Mapping[str, Any]]) -> Response:
    """Return what pydantic found, in a line: 400 for what is no JSON, else 422."""
    parts = [
        ": ".join(filter(None, (".".join(map(str, item["loc"][:6])), item["msg"])))
        for item in errors[:5]
    ]
    not_json = any(item.get("type") == "json_invalid" for item in errors)
    return refusal(400 if not_json else 422, "; ".join(part[:300] for part in parts))
