"""Names, rates, methods and policies."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from serve_cases import call, save_model

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")

from longtail.serve.app import create_app
from longtail.serve.hosts import allowed, default_hosts
from longtail.serve.rate import RateLimit
from longtail.serve.settings import Settings


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("guard") / "tickets")


def ask(app: Any, path: str, **how: Any) -> tuple[int, dict[str, str], bytes]:
    status, headers, chunks = asyncio.run(call(app, path, **how))
    return status, headers, b"".join(chunks)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("192.168.1.7:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example:8000", 421),
        ("", 421),
    ],
)
def test_other_names_are_not_answered_to(model: Path, host: str, status: int) -> None:
    app = create_app(Settings(str(model)))
    for path in ("/model", "/", "/health"):
        assert ask(app, path, headers={"host": host})[0] == status


def test_names_can_be_allowed(model: Path) -> None:
    app = create_app(Settings(str(model), hosts=("models.example",)))
    assert ask(app, "/model", headers={"host": "Models.example:443"})[0] == 200
    assert ask(app, "/model", headers={"host": "localhost"})[0] == 421
    anything = create_app(Settings(str(model), hosts=("*",)))
    assert ask(anything, "/model", headers={"host": "evil.example"})[0] == 200


def test_default_names() -> None:
    assert default_hosts("127.0.0.1") == ("localhost", "127.0.0.1")
    assert len(default_hosts("0.0.0.0")) >= 3
    assert allowed("localhost.", ("localhost",)) and not allowed("localhos", ("localhost",))


def test_no_redirect_to_the_name_a_client_gave(model: Path) -> None:
    app = create_app(Settings(str(model), hosts=("*",)))
    status, headers, _ = ask(app, "/model/", headers={"host": "evil.example"})
    assert status == 404 and "location" not in headers


def test_policies(model: Path) -> None:
    app = create_app(Settings(str(model)))
    for path in ("/report", "/"):
        policy = ask(app, path)[1]["content-security-policy"]
        for part in ("form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"):
            assert part in policy, path


def test_head_of_health(model: Path) -> None:
    app = create_app(Settings(str(model)))
    assert ask(app, "/health", method="HEAD")[0] == 200
    assert "head" not in ask(app, "/openapi.json")[2].decode().split('"/health"')[1][:40]


def test_an_empty_token_is_no_token() -> None:
    for token in ("", " "):
        with pytest.raises(ValueError, match="token is empty"):
            Settings("model", token=token)


def test_a_client_that_asks_too_often_is_told_when_to_come_again(model: Path) -> None:
    app = create_app(Settings(str(model), rate=0.01))

    async def flood() -> list[tuple[int, dict[str, str]]]:
        return [(await call(app, "/version"))[:2] for _ in range(3)]

    found = asyncio.run(flood())
    assert [status for status, _ in found] == [200, 429, 429]
    assert 90 <= int(found[1][1]["retry-after"]) <= 100
    assert ask(app, "/health")[0] == 200


def test_a_bucket_fills_again_and_clients_have_their_own() -> None:
    limit = RateLimit(2.0)
    assert [limit.wait("a", 0.0) for _ in range(5)] == [0, 0, 0, 0, 0.5]
    assert limit.wait("b", 0.0) == 0 and limit.wait("a", 0.6) == 0 and limit.wait("a", 0.6) > 0
    for i in range(20_000):
        limit.wait(str(i), 1.0)
    assert len(limit._clients) <= 10_000
