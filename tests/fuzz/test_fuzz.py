"""The probes of ``make fuzz`` in small: other seeds than those of the large run, in seconds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import probes
import pytest
import watched
from saved_models import MODELS, exercise, tags
from watched import run

import longtail as lt

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.filterwarnings("ignore"),
]
SILENT = {"plain-texts", "v2-sharded"}  # that answer no question; the second has no shards here
SEED = 10**6  # of the cases here


def test_every_kind_of_saved_model_is_damaged() -> None:
    found = {tag for kind in MODELS for tag in tags(probes._state(kind))}
    missing = set(lt._models.TABLE) - found
    assert not missing, f"add a line to MODELS of saved_models.py for {missing}"


def test_whole_models_can_be_used() -> None:
    """Each answers something besides telling what it is, so that damage has somewhere to show."""
    for kind in MODELS:
        assert exercise(lt._models.from_state(probes._state(kind))) > 2 or kind in SILENT, kind


def test_in_small() -> None:
    """In a process of its own: the cases run in forks of it, and other tests have started threads
    here.
    """
    how = ["--models", "400", "--calls", "400", "--texts", "400", "--rooms", "3", "--requests", "0"]
    done = subprocess.run(
        [sys.executable, Path(probes.__file__).with_name("fuzz.py"), "--seed", str(SEED), *how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = dict(re.findall(r"^(\w+): ([\d,]+) cases", done.stdout, re.MULTILINE))
    n_rooms = str(3 * len(probes.WORK))
    assert int(found.pop("corpus")) >= 20
    assert found == {"models": "400", "calls": "400", "texts": "400", "rooms": n_rooms}


def test_requests_after_the_contract() -> None:
    pytest.importorskip("schemathesis")
    pytest.importorskip("fastapi")
    import http_contract

    seen = http_contract.ask(10)
    assert any(" 200" in key for key in seen) and any(" 422" in key for key in seen)


def test_the_watch_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crashes, hangs and errors of ours are faults, and the cases after them are tried."""
    monkeypatch.setattr(watched, "HANG", 0.5)

    def case(name: str) -> None:
        if name == "crash":
            os.kill(os.getpid(), signal.SIGKILL)  # a sanitizer does not see it coming
        elif name == "hang":
            time.sleep(60)
        elif name == "ours":
            raise AssertionError("never")
        elif name == "told":
            raise ValueError("k must be at least 1")
        elif name == "all memory":
            bytearray(1 << 40)

    names = ["fine", "crash", "told", "hang", "ours", "all memory", "fine", "crash"]
    found = run(names, case)
    assert found.ends == {
        "passed": 2,
        "crash (-9)": 2,
        "ValueError": 1,
        "hang": 1,
        "AssertionError": 1,
        "MemoryError": 1,
    }
    kinds = [fault.split()[0] for fault in found.faults]
    assert kinds == ["crash", "hang:", "AssertionError", "crash"]
