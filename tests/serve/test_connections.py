"""Silent, slow and greedy clients are let go, and others do not notice them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from serve_cases import SOURCE, Server, children, save_model, serving, wait_for

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

# The command with shorter times, so that nobody has to wait for the real ones.
QUICK = """
import sys
from longtail.serve import Settings, run
run(Settings(sys.argv[1], header_seconds=1.0, write_seconds=2.0, max_connections=40), port=0)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("connections") / "tickets")


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    with serving(model, command=[sys.executable, "-c", QUICK]) as running:
        yield running


@contextlib.contextmanager
def connected(server: Server, sent: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(sent)
        yield client


def ended(client: socket.socket) -> bytes:
    """What comes until the server closes the connection; fails if it does not."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65536):
            found += part
    return found


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nhost: localhost\r\n", b"G"])
def test_a_client_that_does_not_say_what_it_wants_is_let_go(server: Server, sent: bytes) -> None:
    with connected(server, sent) as client:
        assert ended(client) == b""


def test_a_head_that_drips_is_not_waited_for(server: Server) -> None:
    """A byte now and then does not start the time anew."""
    with connected(server, b"GET /health HTTP/1.1\r\n") as client, pytest.raises(OSError):
        for _ in range(100):
            client.sendall(b"a")
            time.sleep(0.2)


def test_a_second_request_that_stalls(server: Server) -> None:
    ask = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with connected(server, ask) as client:
        found = client.recv(4096)
        while not found.endswith(b"}"):
            found += client.recv(4096)
        client.sendall(b"GET /hea")
        assert ended(client) == b""


@pytest.mark.parametrize("pieces", [1, 64])
def test_a_large_head_is_refused(server: Server, pieces: int) -> None:
    with connected(server, b"GET / HTTP/1.1\r\nhost: localhost\r\na: ") as client:
        with contextlib.suppress(OSError):
            for _ in range(pieces):
                client.sendall(b"b" * 60_000)
            client.sendall(b"\r\n\r\n")
        assert b" 431 " in ended(client) or pieces > 1  # a reset may overtake the answer
    assert server.predict("paper", k=1) == [["printer"]]


@pytest.mark.parametrize("kind", ["trailers", "extension"])
def test_framing_without_a_body_is_refused(server: Server, kind: str) -> None:
    head = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += b"transfer-encoding: chunked\r\n\r\n"
    start = b"2\r\n{}\r\n0\r\nx: " if kind == "trailers" else b"2;x="
    with connected(server, head + start) as client:
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 50_000_000:
                sent += client.send(b"y" * 60_000)
        assert sent < 20_000_000


def test_a_client_that_does_not_read_is_cut_off(server: Server) -> None:
    body = json.dumps({"texts": ["paper jam"] * 1000, "k": 3}).encode()
    head = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    ask = head + b"content-length: %d\r\n\r\n" % len(body) + body
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(30)
        client.connect(("127.0.0.1", server.port))
        # More answers than the buffers between us hold, and not a byte of them read.
        with contextlib.suppress(OSError):
            for _ in range(400):
                client.sendall(ask)
        assert isinstance(_error(client), OSError)
    assert server.predict("paper", k=1) == [["printer"]]


def _error(client: socket.socket) -> OSError | None:
    """What a write says once the other side has cut the connection."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            client.send(b"x")
        except (BrokenPipeError, ConnectionResetError) as error:
            return error
        except OSError:
            pass
        time.sleep(0.1)
    return None


def test_silent_connections_shut_nobody_out(server: Server) -> None:
    """Sixty where forty may be: the oldest go, and whoever asks is answered."""
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(server)) for _ in range(60)]
        for _ in range(5):
            assert server.predict("paper", k=1) == [["printer"]]
        silent[0].settimeout(5)
        assert ended(silent[0]) == b""


def test_requests_under_way_are_not_closed_for_others(server: Server) -> None:
    head = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    body = b'{"texts": ["paper"], "k": 1}'
    with connected(server, head + b"content-length: %d\r\n\r\n" % len(body)) as slow:
        time.sleep(0.2)  # it is under way
        with contextlib.ExitStack() as stack:
            for _ in range(60):
                stack.enter_context(connected(server))
            slow.sendall(body)
            assert b" 200 " in slow.recv(65536)


WORKERS = [[], ["--workers", 2]]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a few may be lost")
@pytest.mark.parametrize("options", WORKERS, ids=["one", "two"])
def test_sigterm_loses_no_request(model: Path, options: list[object]) -> None:
    """Clients that open a connection for every request: each is answered, or not connected."""
    with serving(model, *options) as server:
        stop, lost, answered = threading.Event(), [], []
        ask = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"

        def keep_asking() -> None:
            while not stop.is_set():
                try:
                    client = socket.create_connection(("127.0.0.1", server.port), timeout=20)
                except OSError:  # nobody listens any more
                    return
                with client:
                    try:
                        client.sendall(ask)
                        answered.append(b" 200 " in ended(client))
                        if not answered[-1]:
                            lost.append("no answer")
                    except OSError as error:
                        lost.append(repr(error))

        clients = [threading.Thread(target=keep_asking) for _ in range(8)]
        for client in clients:
            client.start()
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=30)
        stop.set()
        for client in clients:
            client.join()
    assert len(answered) > 20 and not lost, lost


@pytest.mark.skipif(sys.platform != "linux", reason="finds worker processes in /proc")
def test_workers_end_with_their_supervisor(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with serving(model, "--workers", 2) as server:
        workers = children(server.process.pid)
        assert len(workers) >= 2
        server.process.kill()
        server.process.wait()
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("token", ["", "  "])
@pytest.mark.parametrize("way", ["option", "variable"])
def test_an_empty_token_is_refused(model: Path, token: str, way: str) -> None:
    given = ["--token", token] if way == "option" else []
    env = {**os.environ, "PYTHONPATH": SOURCE}
    if way == "variable":
        env["LONGTAIL_TOKEN"] = token
    command = [sys.executable, "-m", "longtail", "serve", str(model), "--port", "0", *given]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "the token is empty" in done.stderr
