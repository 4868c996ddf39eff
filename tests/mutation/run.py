"""Changes the package in small ways and counts the changes that no test notices.

    python tests/mutation/run.py                          300 mutants of five rooms
    python tests/mutation/run.py --n 40 --rooms metrics   fewer, of some rooms
    python tests/mutation/run.py --only 17 23             these numbers of the sample again
    python tests/mutation/run.py --jobs 8 --journal J     eight at a time; again: go on

A mutant (``mutants.py``) is killed when the doctests of its room or the tests in ``tests/ROOM``
fail or run for much too long; those that call the changed function come first (``calls.py``). A
survivor needs a test, or a paragraph in ``explained.txt`` that says why no test can tell. Works on
copies, one per job; prints every survivor and the share that was killed. Exit code 1 if a survivor
is left.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import platform
import queue
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from calls import Calls, Only, callers_of
from mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
ROOMS = ["metrics", "decide", "propensity", "losses", "persist"]
SLOW = ("hypothesis.extra.numpy", "scipy.optimize", "sklearn.metrics", "sybil.parsers.rest")
NO_TESTS = pytest.ExitCode.NO_TESTS_COLLECTED
EXPLAINED = Path(__file__).with_name("explained.txt")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run tests against mutants of the package.")
    parser.add_argument("--n", type=int, default=300, help="mutants to sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help=f"default: {' '.join(ROOMS)}")
    parser.add_argument("--only", nargs="+", type=int, help="numbers of mutants in the sample")
    parser.add_argument("--jobs", type=int, default=1, help="mutants to try at a time")
    parser.add_argument("--journal", type=Path, help="a file for results, one line per mutant")
    options = parser.parse_args()
    print(platform.platform(), platform.processor(), "seed", options.seed)
    print("python", *sys.argv, flush=True)
    for name in SLOW:  # to load: once, before the tests of each mutant run in a fork
        importlib.import_module(name)
    chosen = sample(options.rooms, options.n, options.seed)
    explained = explanations()
    tried = journal(options.journal)
    wanted = [
        (number, path, mutant)
        for number, (path, mutant) in enumerate(chosen)
        if not options.only or number in options.only
    ]
    ends = {"killed": 0, "explained": 0, "survived": 0}
    with tempfile.TemporaryDirectory(prefix="longtail-mutants-") as folder:
        first = copy_to(Path(folder) / "0")
        plain = {room: measure(first, room) for room in {path.parts[2] for _, path, _ in wanted}}
        copies: queue.Queue[Path] = queue.Queue()
        copies.put(first)
        for job in range(1, options.jobs):
            copies.put(Path(shutil.copytree(first, Path(folder) / str(job))))

        def try_one(one: tuple[int, Path, Mutant]) -> tuple[int, Path, Mutant, str]:
            number, path, mutant = one
            if (path.as_posix(), mutant.text, mutant.name) in explained:
                return number, path, mutant, "explained"
            if digest(mutant) in tried:
                return number, path, mutant, tried[digest(mutant)]
            copy = copies.get()
            try:
                dead = killed(copy, path, mutant, plain[path.parts[2]], options.jobs)
            finally:
                copies.put(copy)
            return number, path, mutant, "killed" if dead else "survived"

        with ThreadPoolExecutor(options.jobs) as pool:
            for number, path, mutant, end in pool.map(try_one, wanted):
                ends[end] += 1
                if end == "survived":
                    print(f"{number}: {path}:{mutant.line}: {mutant.what}", flush=True)
                if options.journal and digest(mutant) not in tried:
                    place = f"{path.as_posix()}:{mutant.line}"
                    line = json.dumps([digest(mutant), end, place, mutant.what])
                    with options.journal.open("a", encoding="utf-8") as file:
                        file.write(line + "\n")
    n = sum(ends.values())
    print(", ".join(f"{end} {count}" for end, count in ends.items()), f"of {n} mutants")
    print(f"{ends['killed'] / max(n - ends['explained'], 1):.1%} of those not explained are killed")
    return 1 if ends["survived"] else 0


def copy_to(folder: Path) -> Path:
    """Copy what the tests need to a new folder, and return it."""
    folder.mkdir()
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def journal(path: Path | None) -> dict[str, str]:
    """Return what became of the mutants that an earlier run has tried, by their digests."""
    if path is None or not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {digest: end for digest, end, _, _ in map(json.loads, lines)}


def digest(mutant: Mutant) -> str:
    """Return what tells a mutant from all others: a hash of the whole file with its change."""
    return hashlib.sha256(mutant.source.encode()).hexdigest()[:16]


def sample(rooms: list[str], n: int, seed: int) -> list[tuple[Path, Mutant]]:
    """Return ``n`` mutants, drawn evenly from all of the rooms, with the files they change.

    Each has its own lot, so that most of them stay in the sample when other lines change.
    """
    paths = [
        path for room in rooms for path in sorted((ROOT / "src/longtail" / room).rglob("*.py"))
    ]
    lots: list[tuple[str, Path, Mutant]] = []
    for path in paths:
        again: Counter[tuple[str, str]] = Counter()
        for mutant in mutants(path.read_text(encoding="utf-8")):
            change = mutant.text, mutant.what
            lot = repr((seed, path.relative_to(ROOT).as_posix(), *change, again[change]))
            again[change] += 1
            lots.append((hashlib.sha256(lot.encode()).hexdigest(), path.relative_to(ROOT), mutant))
    print(f"{len(lots):,} mutants of {len(paths)} files, {min(n, len(lots))} of them tried")
    return [(path, mutant) for _, path, mutant in sorted(lots, key=lambda one: one[0])[:n]]


def explanations() -> set[tuple[str, str, str]]:
    """Return path, line and change of every paragraph of ``explained.txt`` but the first."""
    paragraphs = EXPLAINED.read_text(encoding="utf-8").strip().split("\n\n")[1:]
    parts = [paragraph.split("\n", 3) for paragraph in paragraphs]
    return {(path, text, name) for path, text, name, _ in parts}


class Plain(NamedTuple):
    """What the tests of a room do without a mutant: what they call, and how long they take."""

    callers: dict[str, list[str]]
    seconds: dict[str, float]


def measure(copy: Path, room: str) -> Plain:
    """Run the tests of a room without a mutant. Raises if they fail."""
    calls = Calls(copy, f"src/longtail/{room}", copy / f"{room}.json")
    if not passes(copy, everything(room), calls):
        raise SystemExit(f"the tests of {room} fail without a mutant")
    plain = Plain(*json.loads(calls.out.read_text(encoding="utf-8")))
    if not passes(copy, everything(room), Only({*everything(room)}, plain.seconds)):
        raise SystemExit(f"the tests of {room} fail in another order")
    return plain


def killed(copy: Path, path: Path, mutant: Mutant, plain: Plain, jobs: int) -> bool:
    """Return whether tests notice a mutant: first those that call its function, then all of them.

    Those that call it are most of those that can tell, not all: another test may read what the
    first one has left in a cache.
    """
    target = copy / path
    before = target.read_text(encoding="utf-8")
    for compiled in target.parent.glob(f"__pycache__/{target.stem}.*"):
        compiled.unlink()  # it may look as if it were of the changed file: same second, same size
    target.write_text(mutant.source, encoding="utf-8")
    callers = callers_of(path.as_posix(), before, mutant.line, plain.callers)
    try:
        for tests in (callers, {*everything(path.parts[2])}):
            only = Only(tests, plain.seconds, patience=jobs)
            if tests and not passes(copy, only.files, only):
                return True
        return False
    finally:
        target.write_text(before, encoding="utf-8")


def everything(room: str) -> list[str]:
    """Return the doctests and tests of a room."""
    return [f"src/longtail/{room}", f"tests/{room}"]


def passes(copy: Path, tests: list[str], plugin: Calls | Only) -> bool:
    """Return whether tests pass, in a fork of this process."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(run_tests(copy, tests, plugin))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) in (pytest.ExitCode.OK, NO_TESTS)


def run_tests(copy: Path, tests: list[str], plugin: Calls | Only) -> int:
    """Run tests of a copy in this process, without a word, and return pytest's exit code."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = sys.path[0] = str(copy / "src")
    if isinstance(plugin, Calls):
        plugin.listen()
    else:  # there is a mutant: its bytecode must not stay
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    return int(pytest.main([*options, *tests], [plugin]))


if __name__ == "__main__":
    sys.exit(main())
