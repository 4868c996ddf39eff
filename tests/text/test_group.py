"""Text networks trained by several processes together: what one process learns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from group_training import problem, train

import longtail as lt

BASE: dict[str, Any] = {"encoder": "average", "epochs": 3, "batch_size": 16, "dropout": 0.2}


def torchrun(n: int, settings: dict[str, Any], out: Path, code: int = 0) -> str:
    script = Path(__file__).with_name("group_training.py")
    path = os.pathsep.join([str(Path(lt.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *(f"--nproc-per-node={n}", script, json.dumps(settings), out),
        ],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode == 0) == (code == 0), done.stderr[-3000:]
    return done.stderr


def check_alike(one: Any, other: Any) -> None:
    for name in ("output_weights_", "output_bias_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=2e-4)
    texts, _ = problem()
    np.testing.assert_allclose(one.embed(texts), other.embed(texts), atol=2e-4)
    a, b = one.predict_topk(texts, 3), other.predict_topk(texts, 3)
    assert (a.indices == b.indices).mean() > 0.98
    np.testing.assert_allclose(a.scores, b.scores, atol=2e-3)


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "sigmoid"},
        {"loss": "softmax", "validation": 0.2, "patience": 1, "epochs": 5},
        {"encoder": "convolution", "preset": "renee", "dropout": 0.0, "batch_size": 23},
    ],
    ids=["sigmoid", "softmax", "sgd"],
)
def test_processes_together_learn_what_one_does(
    settings: dict[str, Any], n: int, tmp_path: Path
) -> None:
    settings = {**BASE, **settings}
    alone = train({**settings, "micro_batch": -(-settings["batch_size"] // n)})  # draws as they do
    torchrun(n, settings, tmp_path / "m")
    together = lt.load(tmp_path / "m")
    assert len(together.history_) == len(alone.history_)
    assert together.best_epoch_ == alone.best_epoch_
    check_alike(together, alone)


def test_a_checkpoint_goes_on_with_another_number_of_processes(tmp_path: Path) -> None:
    """Two epochs by two processes, one more by four, the last by one: what one process learns."""
    settings = {**BASE, "epochs": 4, "validation": 0.2, "patience": 9, "decay": "constant"}
    alone = train(settings)
    folder = str(tmp_path / "c")
    torchrun(2, {**settings, "checkpoint": folder, "stop_after": 2}, tmp_path / "a")
    assert not (tmp_path / "a").exists()
    torchrun(4, {**settings, "checkpoint": folder, "stop_after": 3}, tmp_path / "b")
    from_there = train(settings, folder)
    assert len(from_there.history_) == 4 and from_there.best_epoch_ == alone.best_epoch_
    check_alike(from_there, alone)


def test_processes_that_disagree_are_refused(tmp_path: Path) -> None:
    said = torchrun(2, {**BASE, "disagree": True}, tmp_path / "m", code=1)
    assert "process 1 trains on other data or parameters than process 0" in said
    said = torchrun(2, {**BASE, "fan_in": 8}, tmp_path / "m", code=1)
    assert "an output layer with fan_in is trained by one process, not by 2" in said
