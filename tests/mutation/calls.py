"""Which tests call which functions of a room: those are the first to ask about a mutant.

    tests of a room ──► Calls ──► {"src/longtail/ROOM/file.py:line of a function": tests}
                                                        │
    a mutant of that function ──► Only(tests) ◄─────────┘   quick ones first, none for much too long

Both are plugins of pytest. A test that starts processes counts as calling everything; what a
fixture calls counts for all tests of its file.
"""

from __future__ import annotations

import ast
import json
import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Calls", "Only", "callers_of"]

EVERY = "*"


class Calls:
    """Write down, in a JSON file, who calls the functions of a folder, and how long tests take."""

    def __init__(self, root: Path, folder: str, out: Path) -> None:
        self.root, self.folder, self.out = f"{root}/", f"{root}/{folder}/", out
        self.callers: dict[str, set[str]] = {EVERY: set()}
        self.seconds: dict[str, float] = {}
        self.now = EVERY

    def listen(self) -> None:
        """Begin, in the process that runs the tests."""
        sys.addaudithook(self._audit)
        self._listen_again()

    def _listen_again(self) -> None:
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def _trace(self, frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(self.folder) and code.co_name != "<module>":
            place = f"{code.co_filename.removeprefix(self.root)}:{code.co_firstlineno}"
            self.callers.setdefault(place, set()).add(self.now)

    def _audit(self, event: str, arguments: object) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn") and self.now != EVERY:
            self.callers[EVERY].add(self.now)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self.now = item.nodeid.partition("::")[0]
        self._listen_again()
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self.now = item.nodeid
        self._listen_again()  # a doctest ends it
        yield
        self.now = EVERY

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)
        callers = {place: sorted(found) for place, found in self.callers.items()}
        self.out.write_text(json.dumps([callers, self.seconds]), encoding="utf-8")


class Only:
    """Keep tests that are named, or are in a file that is named; the quick ones come first.

    A test that takes much longer than it did, in time of the processor, ends the process.
    """

    def __init__(self, named: set[str], seconds: dict[str, float]) -> None:
        self.named, self.seconds = named, seconds

    @property
    def files(self) -> list[str]:
        return sorted({name.partition("::")[0] for name in self.named})

    def expected(self) -> float:
        """Return how many seconds these tests have taken."""
        return sum(seconds for name, seconds in self.seconds.items() if name in self)

    def __contains__(self, name: str) -> bool:
        folders = [name[:at] for at, letter in enumerate(name) if letter in "/:"]
        return not self.named.isdisjoint({name, *folders})

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self]
        items.sort(key=lambda item: self.seconds.get(item.nodeid, 0.0))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        limit = time.process_time() + 10 + 5 * self.seconds.get(nodeid, 1.0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), resource.RLIM_INFINITY))


def callers_of(path: str, source: str, line: int, callers: dict[str, list[str]]) -> set[str]:
    """Return the tests that call the function at a line of a file; none for what is not in one."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in functions:
        if node.lineno < node.body[0].lineno <= line <= (node.end_lineno or 0):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return {*callers.get(f"{path}:{first}", ()), *callers[EVERY]} - {EVERY}
    return set()
