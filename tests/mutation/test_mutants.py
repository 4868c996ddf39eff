"""Mutants are what they say: one change each, of code that runs."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import run
from calls import Calls, Only, callers_of
from mutants import mutants

SOURCE = '''"""A text with 1 < 2."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import os
__all__ = ["f"]
LIMIT: int = 3

def f(x: "int | None" = 0) -> float:
    if not x or x is None and x in (1, 2):
        raise ValueError(f"got {x - 1}")
    return -x**2 if x % 2 == 0 else 0.5 * x  # ö < 1
'''


def test_every_change_is_found_once() -> None:
    found = list(mutants(SOURCE))
    assert [mutant.what for mutant in found] == [
        "3  ->  4",
        "0  ->  1",
        "not x or (x is None and x in (1, 2))  ->  not (not x or (x is None and x in (1, 2)))",
        "not x or (x is None and x in (1, 2))  ->  not x and (x is None and x in (1, 2))",
        "not x  ->  x",
        "x is None and x in (1, 2)  ->  x is None or x in (1, 2)",
        "x is None  ->  x is not None",
        "x in (1, 2)  ->  x not in (1, 2)",
        "1  ->  2",
        "2  ->  3",
        "raise ValueError(f'got {x - 1}')  ->  pass",
        "x % 2 == 0  ->  x % 2 != 0",
        "x % 2  ->  x * 2",
        "2  ->  3",
        "0  ->  1",
        "-x ** 2  ->  x ** 2",
        "x ** 2  ->  x * 2",
        "2  ->  3",
        "0.5 * x  ->  0.5 / x",
        "0.5  ->  1.0",
    ]
    plain = ast.dump(ast.parse(SOURCE))
    changed = [ast.dump(ast.parse(mutant.source)) for mutant in found]
    assert plain not in changed and len(set(changed)) == len(changed)


def test_explanations_are_of_mutants_that_exist() -> None:
    """A line that has changed needs its explanation anew."""
    for path, text, name in run.explanations():
        source = (run.ROOT / path).read_text(encoding="utf-8")
        found = {(mutant.text, mutant.name) for mutant in mutants(source)}
        assert (text, name) in found, f"{path}: {text}: {name}"


def test_the_sample_depends_on_the_seed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (run.sample(["losses"], 20, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert all(path.parent == Path("src/longtail/losses") for path, _ in first)


def test_a_journal_keeps_what_became_of_each(tmp_path: Path) -> None:
    first, second, *_ = mutants("x = 1 + 1\n")
    assert run.digest(first) != run.digest(second) and run.journal(tmp_path / "none") == {}
    lines = [[run.digest(first), "killed", "a.py:1", first.what], ["0" * 16, "survived", "b:1", ""]]
    kept = tmp_path / "journal"
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run.journal(kept) == {run.digest(first): "killed", "0" * 16: "survived"}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A package with two functions, and a test of each."""
    (tmp_path / "src" / "small").mkdir(parents=True)
    (tmp_path / "src" / "small" / "sums.py").write_text(
        "def one(n=1):\n    return n\n\n\ndef two():\n    return 2\n"
    )
    (tmp_path / "test_sums.py").write_text(
        "from small.sums import one, two\n\n\n"
        "def test_one():\n    assert one() == 1\n\n\ndef test_two():\n    assert two() == 2\n"
    )
    return tmp_path


def test_only_tests_that_call_a_function_are_asked_first(house: Path) -> None:
    calls = Calls(house, "src/small", house / "calls.json")
    assert run.passes(house, ["test_sums.py"], calls)
    callers, seconds = json.loads(calls.out.read_text())
    path = "src/small/sums.py"
    source = (house / path).read_text()
    found = [callers_of(path, source, line, callers) for line in (1, 2, 6)]
    assert found == [set(), {"test_sums.py::test_one"}, {"test_sums.py::test_two"}]
    (house / path).write_text(source.replace("return 2", "return 3"))
    for test, passes in ((found[1], True), (found[2], False)):
        only = Only(test, seconds)
        assert run.passes(house, only.files, only) == passes


def test_a_test_that_does_not_end_fails(house: Path) -> None:
    (house / "src/small/sums.py").write_text("import time\none = two = lambda: time.sleep(3600)\n")
    only = Only({"test_sums.py"}, {}, patience=0.01)
    assert not run.passes(house, only.files, only)
