"""Changes the package in small ways and counts the changes that no test notices.

    python tests/mutation/run.py                          300 mutants of five rooms (about an hour)
    python tests/mutation/run.py --n 40 --rooms metrics   fewer, of some rooms
    python tests/mutation/run.py --only 17 23             these numbers of the sample again
    python tests/mutation/run.py --jobs 8 --journal J     eight at a time; again: go on

A mutant (``mutants.py``) is killed when the doctests of its room or the tests in ``tests/ROOM``
fail or run for much too long. A survivor needs a test, or a line in ``explained.txt`` that says why
no test can tell: ``path | before  ->  after | why``. Works on copies, one per job; prints every
survivor and the share that was killed. Exit code 1 if a survivor is left.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
ROOMS = ["metrics", "decide", "propensity", "losses", "persist"]
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
        copies: queue.Queue[Path] = queue.Queue()
        for job in range(options.jobs):
            copies.put(copy_to(Path(folder) / str(job)))
        limits = {room: limit(copies.queue[0], room) for room in {p.parts[2] for _, p, _ in wanted}}

        def try_one(one: tuple[int, Path, Mutant]) -> tuple[int, Path, Mutant, str]:
            number, path, mutant = one
            if (path.as_posix(), mutant.what) in explained:
                return number, path, mutant, "explained"
            if digest(mutant) in tried:
                return number, path, mutant, tried[digest(mutant)]
            copy = copies.get()
            try:
                dead = killed(copy, path, mutant, limits[path.parts[2]] * options.jobs)
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
    """Return ``n`` mutants, drawn evenly from all of the rooms, with the files they change."""
    paths = [
        path for room in rooms for path in sorted((ROOT / "src/longtail" / room).rglob("*.py"))
    ]
    found = [
        (path.relative_to(ROOT), mutant)
        for path in paths
        for mutant in mutants(path.read_text(encoding="utf-8"))
    ]
    print(f"{len(found):,} mutants of {len(paths)} files, {min(n, len(found))} of them tried")
    return random.Random(seed).sample(found, min(n, len(found)))


def explanations() -> set[tuple[str, str]]:
    """Return path and change of every line of ``explained.txt``."""
    lines = EXPLAINED.read_text(encoding="utf-8").splitlines()
    parts = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    return {(path, what) for path, what, _ in parts}


def limit(copy: Path, room: str) -> float:
    """Return the seconds after which a mutant counts as hanging. Raises if the tests fail now."""
    began = time.monotonic()
    if not passes(copy, room, None):
        raise SystemExit(f"the tests of {room} fail without a mutant")
    return 60 + 5 * (time.monotonic() - began)


def killed(copy: Path, path: Path, mutant: Mutant, seconds: float) -> bool:
    """Return whether the tests notice a mutant."""
    target = copy / path
    before = target.read_text(encoding="utf-8")
    target.write_text(mutant.source, encoding="utf-8")
    try:
        return not passes(copy, path.parts[2], seconds)
    finally:
        target.write_text(before, encoding="utf-8")


def passes(copy: Path, room: str, seconds: float | None) -> bool:
    """Return whether doctests and tests of a room pass within ``seconds``."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, "--hypothesis-seed=0", f"src/longtail/{room}", f"tests/{room}"],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
