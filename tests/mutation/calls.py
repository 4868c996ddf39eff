"""Which tests call which functions of a room: those are the first to ask about a mutant.

    tests of a room ──► Calls ──► {"src/longtail/ROOM/file.py:line of a function": tests}
                                                        │
    a mutant of that function ──► Only(tests) ◄─────────┘   quick ones first, none for much too long

Both are plugins of pytest. A test that starts processes counts as calling everything; what a
fixture calls counts for all tests of its file.
"""

from __future__ import annotations

import ast
import faulthandler
import json
import sys
import threading
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
        self.now = _file(item.nodeid)
        self._listen_again()
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        if isinstance(item, pytest.Function):  # examples of a file build on each other
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
    """Keep tests that are named, or in a place that is named; files that are quick come first.

    A test that takes much longer than it did ends the process.
    """

    def __init__(self, named: set[str], seconds: dict[str, float], patience: float = 1) -> None:
        self.named, self.seconds, self.patience = named, seconds, patience

    @property
    def files(self) -> list[str]:
        return sorted({_file(name) for name in self.named})

    def __contains__(self, name: str) -> bool:
        folders = [name[:at] for at, letter in enumerate(name) if letter in "/:"]
        return not self.named.isdisjoint({name, *folders})

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self]
        seconds: dict[str, float] = {}
        for item in items:
            file = _file(item.nodeid)
            seconds[file] = seconds.get(file, 0.0) + self.seconds.get(item.nodeid, 0.0)
        items.sort(key=lambda item: seconds[_file(item.nodeid)])

    def pytest_sessionstart(self) -> None:
        self._end_after(60)  # while modules are imported

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._end_after(30 + 10 * self.seconds.get(nodeid, 1.0))

    def _end_after(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(self.patience * seconds, exit=True, file=2)


def _file(name: str) -> str:
    return name.partition("::")[0]


def callers_of(path: str, source: str, line: int, callers: dict[str, list[str]]) -> set[str]:
    """Return the tests that call the function at a line of a file; none for what is not in one."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in functions:
        if node.lineno < node.body[0].lineno <= line <= (node.end_lineno or 0):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return {*callers.get(f"{path}:{first}", ()), *callers[EVERY]} - {EVERY}
    return set()
