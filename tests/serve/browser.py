"""Headless Chromium, driven over its debugging pipe: no package needed, only the browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None
)


class Browser:
    """One page. ``run`` evaluates JavaScript in it; ``until`` waits for an expression to hold."""

    def __init__(self, folder: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def connect() -> None:  # the browser reads commands from 3 and answers on 4
            os.dup2(theirs_in, 30)
            os.dup2(theirs_out, 31)
            os.dup2(30, 3)
            os.dup2(31, 4)

        assert CHROMIUM is not None
        self.process = subprocess.Popen(
            [
                CHROMIUM,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                f"--user-data-dir={folder}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=connect,
            close_fds=False,
            # What is loaded into Python first, a sanitizer say, has no business in a browser.
            env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.reader, self.writer = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.count = 0
        self.session: str | None = None
        self.complaints: list[str] = []  # errors that the page logged
        self._buffer = b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        self.writer.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = self.reader.read1(1 << 16)
            assert part, "the browser has gone"
            self._buffer += part
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(raw)
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(message["params"]["exceptionDetails"])[:500])
        if message.get("method") == "Log.entryAdded":
            entry = message["params"]["entry"]
            if entry["level"] == "error":
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
        return message

    def open(self, url: str, width: int = 1200, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && document.getElementById('text')")

    def run(self, expression: str) -> Any:
        found = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.run(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"waited in vain for {expression}"
            time.sleep(0.05)

    def type(self, element: str, text: str) -> None:
        self.run(f"document.getElementById({element!r}).focus()")
        self.call("Input.insertText", text=text)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)
        self.reader.close()
        self.writer.close()
