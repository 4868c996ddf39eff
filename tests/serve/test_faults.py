"""Tokens, workers that die, too much to do, slow clients."""

from __future__ import annotations

import concurrent.futures
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from serve_cases import SOURCE, children, save_model, serving, wait_for

import longtail as lt
from longtail.cli import main

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("faults") / "tickets")


def test_token_time_out_and_back_pressure(model: Path) -> None:
    options = ("--token", "s3cret-ü", "--timeout", 1.5, "--max-waiting", 4)
    with serving(model, *options) as server:
        right = {"authorization": "Bearer s3cret-ü".encode().decode("latin-1")}
        asked = {"texts": ["paper jam"]}
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "s3cret-ü"}):
            status, answer, _ = server.ask("/predict", asked, headers)
            assert status == 401 and answer["www-authenticate"] == "Bearer"
        assert server.ask("/predict", asked, right)[0] == 200
        assert server.ask("/metrics")[0] == server.ask("/openapi.json")[0] == 401
        assert server.ask("/")[0] == server.ask("/health")[0] == 200

        # A client that never ends its request is let go.
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            head = "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n"
            slow.sendall((head + "authorization: Bearer s3cret-ü\r\n\r\n{").encode())
            slow.settimeout(10)
            assert b"503" in slow.recv(4096).split(b"\r\n")[0]

        # More than may wait is refused, and says when to come again.
        big = {"texts": ["paper jam in the tray"] * 900, "k": 3}
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            found = list(pool.map(lambda _: server.ask("/predict", big, right), range(24)))
        statuses = [status for status, _, _ in found]
        assert 200 in statuses and set(statuses) <= {200, 503}
        assert all(
            h.get("retry-after") == "1"
            for s, h, p in found
            if s == 503 and "waiting" in p["detail"]
        )
        assert server.ask("/predict", asked, right)[0] == 200


# What a model with an encoder imports, and what does not survive a fork.
TORCH = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')"
RUN = "import runpy; runpy.run_module('longtail', run_name='__main__')"


@pytest.mark.skipif(sys.platform != "linux", reason="finds worker processes in /proc")
@pytest.mark.parametrize("forked", [True, False], ids=["forked", "new interpreters"])
def test_a_worker_that_is_killed_is_replaced(model: Path, forked: bool) -> None:
    command = None if forked else [sys.executable, "-c", f"{TORCH}; {RUN}", "serve", "--port", "0"]
    with serving(model, "--workers", 2, command=command) as server:
        workers = children(server.process.pid)
        assert len(workers) >= 2
        commands = {Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers}
        assert any(b"spawn" in command for command in commands) != forked
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: server.predict("paper jam", k=1) == [["printer"]])
        for _ in range(10):
            assert server.predict("wifi router", k=1) == [["network"]]
        counted = server.ask("/metrics")[2]
        texts = int(re.search(r"^longtail_texts_total (\d+)", counted, re.MULTILINE)[1])
        assert texts >= 11  # summed over the workers


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX systems")
def test_a_full_disk(model: Path, tmp_path: Path) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    served = tmp_path / "served"
    shutil.copytree(model, served)
    # No room for the counters that worker processes share: they count each for itself.
    options = ("--workers", 2, "--reload-seconds", 0.1)
    with serving(served, *options, before=no_room) as server:
        assert server.predict("paper jam", k=1) == [["printer"]]
        assert "longtail_requests_total" in server.ask("/metrics")[2]
        # No room for the new model: the old one is served on.
        path = os.pathsep.join(p for p in (SOURCE, os.environ.get("PYTHONPATH")) if p)
        code = "import longtail as lt, sys; lt.load(sys.argv[1]).save(sys.argv[1], overwrite=True)"
        done = subprocess.run(
            [sys.executable, "-c", code, str(served)],
            env={**os.environ, "PYTHONPATH": path},
            preexec_fn=no_room,
            capture_output=True,
        )
        assert done.returncode and b"OSError" in done.stderr
        time.sleep(0.5)
        assert server.predict("wifi router", k=1) == [["network"]]
        assert server.ask("/health")[2] == {"status": "ok", "reload_error": None}


def test_a_model_whose_arrays_are_cut_short_is_refused(model: Path, tmp_path: Path) -> None:
    served = tmp_path / "served"
    shutil.copytree(model, served)
    with serving(served, "--reload-seconds", 0.1) as server:
        before = server.predict("paper jam")
        # A new model, of which an array has lost its end, in place of the old one.
        fresh = tmp_path / "fresh"
        shutil.copytree(model, fresh)
        whole = (fresh / "arrays.bin").read_bytes()
        (fresh / "arrays.bin").write_bytes(whole[: len(whole) // 2])
        served.rename(tmp_path / "old")
        fresh.rename(served)
        wait_for(lambda: server.ask("/health")[2]["reload_error"])
        assert "arrays.bin" in server.ask("/health")[2]["reload_error"]
        assert server.predict("paper jam") == before


def test_what_cannot_be_served_is_refused_at_the_start(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets its own
    broken = save_model(tmp_path / "broken")
    (broken / "manifest.json").write_text("{}")
    lt.baselines.Popularity().fit([[1.0]], [[0]]).save(tmp_path / "bare")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cases = [
            ([broken], "manifest"),
            ([tmp_path / "bare"], "Popularity"),
            ([model, "--port", taken.getsockname()[1]], "cannot listen"),
        ]
        for arguments, message in cases:
            assert main(["serve", *map(str, arguments)]) == 2
            assert message in capsys.readouterr().err.splitlines()[-1]


def test_it_stops_when_told(model: Path) -> None:
    with serving(model, "--no-log") as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=20) in (0, 130)
        assert server.said() in ("", "longtail: interrupted\n")  # nothing to complain of
