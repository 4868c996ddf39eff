"""A real server in a process of its own, and a plain client."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import longtail as lt

SOURCE = str(Path(lt.__file__).parents[1])
WORDS = {"printer": "paper jam tray toner", "login": "password account", "network": "wifi router"}


def save_model(folder: Path, extra: str = "") -> Path:
    """A tagger of three labels (four with ``extra``), with its report, in ``folder``."""
    words = {**WORDS, **({extra: f"{extra} talk"} if extra else {})}
    texts = [f"{w} {v}" for name in words for w in words[name].split() for v in words[name].split()]
    labels = [[name] for name in words for _ in range(len(words[name].split()) ** 2)]
    tagger = lt.Tagger(model="xr-linear").fit(texts, labels)
    report = tagger.evaluate(texts, labels, n_resamples=0, title="Tickets")
    tagger.keep_report(report, tagger.lean_curve(texts, tagger.truth(labels)))
    tagger.save(folder, overwrite=True)
    return folder


class Server:
    """A running ``longtail serve``; ``ask`` returns status, headers and the decoded body."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self._said: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self._said.append(self.process.stderr.read())

    def said(self) -> str:
        """What it wrote to standard error after its first line; waits until it has ended."""
        self._listener.join(timeout=20)
        return "".join(self._said)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, path: str, body: Any = None, headers: dict[str, str] | None = None, method: str = ""
    ) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            how = method or ("GET" if data is None else "POST")
            connection.request(
                how, path, data, {"content-type": "application/json", **(headers or {})}
            )
            response = connection.getresponse()
            raw, kind = response.read(), response.headers.get("content-type", "")
            found = json.loads(raw) if "json" in kind else raw.decode()
            return response.status, {k.lower(): v for k, v in response.headers.items()}, found
        finally:
            connection.close()

    def predict(self, *texts: str, **options: Any) -> list[list[str]]:
        status, _, body = self.ask("/predict", {"texts": list(texts), **options})
        assert status == 200, body
        return [[item["label"] for item in result["labels"]] for result in body["results"]]


@contextlib.contextmanager
def serving(
    model: Path,
    *options: object,
    before: Callable[[], None] | None = None,
    command: list[str] | None = None,
) -> Iterator[Server]:
    """Starts a server on a free port, ``before`` called in its process, and stops it in the end.

    ``command``: what starts it instead of ``longtail serve``, given the model's folder.
    """
    path = os.pathsep.join(p for p in (SOURCE, os.environ.get("PYTHONPATH")) if p)
    usual = [sys.executable, "-m", "longtail", "serve", str(model), "--port", "0"]
    process = subprocess.Popen(
        [*(usual if command is None else [*command, str(model)]), *map(str, options)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        preexec_fn=before,
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r":(\d+) \(", line)
        assert found, line + process.stderr.read()
        server = Server(process, int(found[1]))
        wait_for(lambda: server.ask("/health")[0] == 200)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(condition: Any, seconds: float = 30.0) -> None:
    """Until the condition holds; connections that fail count as not yet."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if condition():
                return
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def children(parent: int) -> list[int]:
    """Worker processes: children that run our code, and not the tracker of resources."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(fields[1]) == parent and b"resource_tracker" not in command:
                found.append(int(entry.name))
    return found


async def call(
    app: Any,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
    gone: asyncio.Event | None = None,
    method: str = "",
) -> tuple[int, dict[str, str], list[bytes]]:
    """Asks an ASGI application in this process: status, headers and the chunks of the body.

    ``gone``: the client hangs up once it is set.
    """
    data = b"" if body is None else body
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    fields = {"host": "localhost", "content-type": "application/json", **(headers or {})}
    scope = {
        "type": "http",
        "method": method or ("GET" if body is None else "POST"),
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "headers": [(k.encode(), v.encode("latin-1")) for k, v in fields.items()],
        "state": {},
    }
    sent: list[Any] = []
    received = False

    async def receive() -> dict[str, Any]:
        nonlocal received
        if received:
            await (gone or asyncio.Event()).wait()
            return {"type": "http.disconnect"}
        received = True
        return {"type": "http.request", "body": data, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if not sent:
        return 0, {}, []
    found = {k.decode(): v.decode("latin-1") for k, v in sent[0]["headers"]}
    return sent[0]["status"], found, [message["body"] for message in sent[1:]]
