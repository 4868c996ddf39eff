"""Forked workers answer as their parent does, and share the pages of its model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import longtail as lt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model of some 12 MB, beside the rows to ask it about."""
    rng = np.random.default_rng(0)
    X = rng.random((2000, 300), np.float32)
    Y = [[i % 6000, (7 * i) % 6000] for i in range(2000)]
    model = lt.OneVsAll(threshold=0, max_iter=1, bias=0).fit(X, [*Y[:-1], [5999]])
    root = tmp_path_factory.mktemp("model")
    np.save(root / "X.npy", X[:200])
    model.save(root / "m")
    assert model.nbytes > 10_000_000
    return root / "m"


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs /proc/self/smaps")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("mode", ["mmap", "memory"])
def test_forked_workers_share_pages(folder: Path, mode: str) -> None:
    script = Path(__file__).with_name("forked_workers.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder), mode],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["codes"] == [0, 0, 0]
    assert len(found["workers"]) == 3
    for worker in found["workers"]:
        assert worker["same"]
        assert worker["grown"] < found["nbytes"] / 3, "a worker copied the model"
        if mode == "mmap":
            assert worker["dirty_files"] == 0, "a worker wrote to the model's pages"
            assert worker["mapped"] > found["nbytes"] / 2, "the model is not read from its files"
