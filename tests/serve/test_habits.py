"""What people expect of a service: logs, other origins, one text, a title, its interface."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from serve_cases import SOURCE, Server, save_model, serving, wait_for

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("habits") / "tickets")


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    with serving(model, "--cors-origin", "https://example.org/", "--title", "Tickets") as running:
        yield running


def test_one_text_or_several(server: Server) -> None:
    _, _, one = server.ask("/predict", {"text": "paper jam", "k": 1})
    _, _, several = server.ask("/predict", {"texts": ["paper jam"], "k": 1})
    assert one == several
    for odd in ({"text": "a", "texts": ["b"]}, {"k": 3}, {"text": None}, {"text": ["a"]}):
        status, _, body = server.ask("/predict", odd)
        assert status == 422, body
    assert "give texts, a list, or text" in server.ask("/predict", {})[2]["detail"]


def test_title_and_facts(server: Server) -> None:
    facts = server.ask("/model")[2]
    assert facts["name"] == "Tickets" and facts["about"].startswith("Suggests labels")
    assert re.match(r"20\d\d-", facts["created"]) and facts["examples"] == []
    assert "<title>Tickets: the interface" in server.ask("/docs")[2]


def test_the_interface_page_lists_every_endpoint(server: Server) -> None:
    contract = server.ask("/openapi.json")[2]
    status, headers, page = server.ask("/docs")
    assert status == 200 and "script" not in page and "default-src 'none'" in str(headers)
    assert not re.search(r"(src|href)=\"?(https?:)?//", page)
    for path in contract["paths"]:
        assert f"<code>{path}</code>" in page
    example = re.search(r"-d &#x27;(\{.*?\})&#x27;", page)
    assert example
    asked = json.loads(example[1].replace("&quot;", '"'))
    assert server.ask("/predict", asked)[0] == 200


def test_other_origins_only_by_option(server: Server, model: Path) -> None:
    ours, theirs = {"origin": "https://example.org"}, {"origin": "https://evil.example"}
    question = {"access-control-request-method": "POST"}
    status, headers, _ = server.ask("/predict", headers={**ours, **question}, method="OPTIONS")
    assert status == 204 and headers["access-control-allow-origin"] == "https://example.org"
    assert "authorization" in headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in headers
    _, headers, _ = server.ask("/predict", {"text": "paper"}, headers=ours)
    assert headers["access-control-allow-origin"] == "https://example.org"
    assert "origin" in headers["vary"]
    for more in (theirs, {}):
        _, headers, _ = server.ask("/predict", {"text": "paper"}, headers=more)
        assert "access-control-allow-origin" not in headers
    assert server.ask("/predict", headers={**theirs, **question}, method="OPTIONS")[0] == 405
    with serving(model, "--token", "t") as closed:
        _, headers, _ = closed.ask("/health", headers=ours)
        assert "access-control-allow-origin" not in headers
    with serving(model, "--token", "t", "--cors-origin", "*") as guarded:
        status, _, _ = guarded.ask("/predict", headers={**theirs, **question}, method="OPTIONS")
        assert status == 204  # a browser asks without the token, and gets no answer of the model
        status, headers, _ = guarded.ask("/predict", {"text": "paper"}, headers=theirs)
        assert status == 401 and headers["access-control-allow-origin"] == theirs["origin"]
        assert guarded.ask("/docs")[0] == 200 and guarded.ask("/openapi.json")[0] == 401


@pytest.mark.parametrize("origin", ["example.org", "https://", "https://a/b", "javascript:x"])
def test_origins_that_are_none(origin: str, model: Path) -> None:
    from longtail.serve import Settings

    with pytest.raises(ValueError, match="is no origin"):
        Settings(model=str(model), origins=(origin,))


def test_requests_and_new_models_are_logged(tmp_path: Path) -> None:
    model = save_model(tmp_path / "m")
    with serving(model, "--reload-seconds", 0.1, "--token", "secret") as server:
        headers = {"authorization": "Bearer secret"}
        server.ask("/predict", {"text": "a private text"}, headers=headers)
        server.ask("/labels?q=private", headers=headers)
        server.ask("/no%0Asuch%1b[31mpath", headers=headers)
        server.ask("/predict", {"text": "a private text"})
        save_model(model, extra="garden")
        wait_for(lambda: "garden" in str(server.ask("/labels", headers=headers)[2]))
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=20)
        said = server.said()
    lines = said.splitlines()
    stamp = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ "
    assert all(re.match(stamp, line) for line in lines), said
    assert re.search(rf"{stamp}127\.0\.0\.1 POST /predict 200 \d+\.\d ms", said)
    assert "POST /predict 401" in said and "a new model took over" in said
    assert "private" not in said and "secret" not in said and "\x1b" not in said
    assert "/health" not in said and "GET /labels 200" in said


def test_a_pipe_that_nobody_reads_holds_nothing_up(model: Path) -> None:
    """Far more log lines than a pipe takes: answers still come."""
    code = (
        "import sys, os; r, w = os.pipe(); os.dup2(w, 2); os.set_blocking(1, True);"
        "from longtail.cli import main; main(sys.argv[1:])"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ask = [sys.executable, "-c", code, "serve", str(model), "--port", str(port)]
    path = os.pathsep.join(p for p in (SOURCE, os.environ.get("PYTHONPATH")) if p)
    process = subprocess.Popen(ask, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE)
    quiet = Server.__new__(Server)
    quiet.port = port
    try:
        wait_for(lambda: quiet.ask("/health")[0] == 200)
        path = "/" + "x" * 190
        done = []
        many = [threading.Thread(target=lambda: done.append(quiet.ask(path))) for _ in range(600)]
        for thread in many:
            thread.start()
        for thread in many:
            thread.join(timeout=60)
        assert len(done) == 600 and quiet.ask("/predict", {"text": "paper"})[0] == 200
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
