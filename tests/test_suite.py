"""The suite itself: it runs in the background, and ends without leaving anything behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run_pytest(*arguments: str, before: Callable[[], object] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        preexec_fn=before,
        timeout=300,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told[-3000:]
    return told


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")
@pytest.mark.parametrize(
    "test",
    [
        "tests/features/test_tfidf.py::test_ctrl_c_stops_a_long_fit",
        "tests/cli/test_interruption.py::test_prediction_streams_and_stops_at_ctrl_c",
    ],
)
def test_interruption_is_tested_where_ctrl_c_is_ignored(test: str) -> None:
    told = run_pytest(test, before=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert "skipped" not in told


@pytest.mark.skipif(not util.find_spec("torch"), reason="what pytest holds is freed without torch")
def test_models_of_example_pages_are_freed() -> None:
    assert "leaked" not in run_pytest("-p", "torch", "docs/tutorial.md")
