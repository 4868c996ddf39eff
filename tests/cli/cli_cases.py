"""Running the command line as a user does: in a process of its own."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import longtail

SOURCE = str(Path(longtail.__file__).parents[1])
TOPICS = {
    "printer": "paper jam tray toner ink cartridge",
    "login": "password login account locked reset",
    "network": "wifi cable router internet slow",
}


def environment() -> dict[str, str]:
    path = os.pathsep.join(p for p in (SOURCE, os.environ.get("PYTHONPATH")) if p)
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "120"}


def longtail_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "longtail", *map(str, arguments)]


def run(*arguments: object, stdin: str | bytes = "", code: int = 0) -> subprocess.CompletedProcess:
    """Runs ``longtail ...`` and checks the exit code."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        longtail_command(*arguments),
        input=data,
        capture_output=True,
        env=environment(),
        timeout=120,
    )
    out = subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )
    assert out.returncode == code, f"exit code {out.returncode}\n{out.stdout}\n{out.stderr}"
    return out


def write_tickets(path: Path, n: int = 150) -> Path:
    """JSON lines of texts with one or two labels, whose words tell them."""
    rng = random.Random(0)
    with open(path, "w") as file:
        for i in range(n):
            names = sorted(rng.sample(list(TOPICS), 1 + i % 2))
            words = [w for name in names for w in rng.choices(TOPICS[name].split(), k=5)]
            record = {"text": " ".join(words), "labels": names, "title": words[0]}
            file.write(json.dumps(record) + "\n")
    return path
