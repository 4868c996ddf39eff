"""The probes of ``make fuzz`` in small: other seeds than those of the large run, in seconds."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import probes
import pytest
import watched
from saved_models import MODELS, exercise, tags
from watched import Outcome, run, worst

import longtail as lt

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.filterwarnings("ignore"),
]
CORPUS = Path(__file__).with_name("corpus")
SEEDS = json.loads((CORPUS / "seeds.json").read_text())
SEED = 10**6  # of the cases here


def test_every_kind_of_saved_model_is_damaged() -> None:
    found = {tag for kind in MODELS for tag in tags(probes._state(kind))}
    missing = set(lt.models.TABLE) - found
    assert not missing, f"add a line to MODELS of saved_models.py for {missing}"


def test_whole_models_can_be_used() -> None:
    for kind in MODELS:
        exercise(lt.models.from_state(probes._state(kind)))


@pytest.mark.parametrize("probe", ["models", "calls", "texts"])
def test_in_small(probe: str) -> None:
    found: Outcome = getattr(probes, probe)(400, SEED)
    assert not found.faults, worst(found)
    assert sum(found.ends.values()) == 400


def test_little_memory() -> None:
    found = probes.memory([8, 34, 60])
    assert not found.faults, worst(found)


def test_what_was_found_before() -> None:
    names: list[Any] = [tuple(case) for case in SEEDS["models"]]
    for cases, case in [
        (names, probes.damaged_model),
        (SEEDS["calls"], probes.odd_call),
        (SEEDS["texts"], probes.odd_text),
        (json.loads((CORPUS / "models.json").read_text()), _changed_model),
    ]:
        found = run(cases, case)
        assert not found.faults, worst(found)


def _changed_model(entry: dict[str, Any]) -> None:
    state = probes.mutation_free(entry["kind"])
    node = state
    for name in entry["part"]:
        node = node.parts[name]
    assert set(entry["params"]) <= set(node.params), "the entry names parameters that are no more"
    node.params.update(entry["params"])
    probes.load_and_use(lambda: lt.models.from_state(state))


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
            os.kill(os.getpid(), signal.SIGSEGV)
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
        "crash (-11)": 2,
        "ValueError": 1,
        "hang": 1,
        "AssertionError": 1,
        "MemoryError": 1,
    }
    kinds = [fault.split()[0] for fault in found.faults]
    assert kinds == ["crash", "hang:", "AssertionError", "crash"]
