"""Requests that schemathesis derives from the contract of the service, right ones and wrong ones.

Every answer must be one that the contract names, of the type and shape that it names.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import saved_models
from hypothesis import HealthCheck, given, settings

__all__ = ["ask"]


def ask(n: int) -> Counter[str]:
    """Sends about ``n`` requests to each endpoint of a service; the statuses, by endpoint."""
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    from longtail.serve.app import create_app
    from longtail.serve.settings import Settings

    wanted = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    with tempfile.TemporaryDirectory() as home:
        saved_models.MODELS["tagger"](Path(home) / "m")
        app = create_app(Settings(str(Path(home) / "m"), hosts=("*",)))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    seen: Counter[str] = Counter()
    for operation in schema.get_all_operations():
        found = operation.ok()
        requests = found.as_strategy()
        if found.body or found.query:
            requests |= found.as_strategy(generation_mode=GenerationMode.NEGATIVE)

        @given(requests)
        @settings(
            max_examples=n,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        def send(case: object) -> None:
            response = case.call()  # type: ignore[attr-defined]
            seen[f"{case.method} {case.path} {response.status_code}"] += 1  # type: ignore[attr-defined]
            case.validate_response(response, checks=wanted)  # type: ignore[attr-defined]

        send()
    return seen
