"""Text networks trained by several processes together: what one process learns."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from group_training import problem, train

import longtail as lt
from longtail.deep.encoders.average import Average

TRAIN = Path(__file__).with_name("group_training.py")
SOFT = {"loss": "softmax", "patience": 1}
BASE: dict[str, Any] = {"encoder": "average", "epochs": 3, "batch_size": 16, "dropout": 0.2}


def together(n: int, settings: dict[str, Any], out: Path, code: int = 0) -> str:
    """Train by ``n`` processes; returns what they said."""
    return torchrun(n, TRAIN, json.dumps(settings), out, code=code)


def torchrun(n: int, *script: object, code: int = 0) -> str:
    places = (Path(lt.__file__).parents[1], TRAIN.parent, os.environ.get("PYTHONPATH", ""))
    path = os.pathsep.join(map(str, places))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *(f"--nproc-per-node={n}", *map(str, script)),
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


@pytest.mark.parametrize(
    ("n", "settings"),
    [
        pytest.param(2, {"loss": "sigmoid"}, id="sigmoid-2"),
        pytest.param(4, {"loss": "sigmoid"}, id="sigmoid-4"),
        pytest.param(4, {**SOFT, "validation": 0.2, "epochs": 5}, id="softmax-4"),
        pytest.param(2, {"preset": "renee", "dropout": 0.0, "batch_size": 23}, id="sgd-2"),
    ],
)
def test_processes_together_learn_what_one_does(
    n: int, settings: dict[str, Any], tmp_path: Path
) -> None:
    settings = {**BASE, **settings}
    alone = train({**settings, "micro_batch": -(-settings["batch_size"] // n)})  # draws as they do
    together(n, settings, tmp_path / "m")
    found = lt.load(tmp_path / "m")
    assert len(found.history_) == len(alone.history_)
    assert found.best_epoch_ == alone.best_epoch_
    check_alike(found, alone)


def test_a_checkpoint_goes_on_with_another_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two epochs by two processes, one more by four, the last by one: what one process learns."""
    settings = {**BASE, "epochs": 4, "validation": 0.2, "patience": 9, "still": True}
    monkeypatch.setattr(Average.__init__, "__defaults__", (384, 0.0))
    alone = train(settings)
    folder = str(tmp_path / "c")
    together(2, {**settings, "checkpoint": folder, "stop_after": 2}, tmp_path / "a")
    assert not (tmp_path / "a").exists()
    together(4, {**settings, "checkpoint": folder, "stop_after": 3}, tmp_path / "b")
    from_there = train(settings, folder)
    assert len(from_there.history_) == 4 and from_there.best_epoch_ == alone.best_epoch_
    check_alike(from_there, alone)


def test_every_process_ends_with_the_same_model(tmp_path: Path) -> None:
    """Also with norms over batches, of which each process sees another share."""
    settings = {**BASE, "encoder": "convolution", "save_all": True, "epochs": 2}
    together(2, settings, tmp_path / "m")
    one, other = lt.load(tmp_path / "m"), lt.load(tmp_path / "m-1")
    texts, _ = problem()
    assert np.array_equal(one.embed(texts), other.embed(texts))
    assert one.predict_topk(texts) == other.predict_topk(texts)


def test_the_script_on_the_page(tmp_path: Path) -> None:
    """What docs/more-machines.md tells to write, by two processes."""
    page = Path(__file__).parents[2] / "docs" / "more-machines.md"
    (script,) = re.findall(
        r"^```python\n([^`]*init_process_group[^`]*)```", page.read_text(encoding="utf-8"), re.M
    )
    before = "from group_training import problem\ntexts, labels = problem()\n"
    (tmp_path / "train.py").write_text(before + script.replace("shared/", f"{tmp_path}/"))
    torchrun(2, tmp_path / "train.py")
    assert lt.load(tmp_path / "model").n_labels_ == 23


def test_processes_that_disagree_are_refused(tmp_path: Path) -> None:
    said = together(2, {**BASE, "disagree": True}, tmp_path / "m", code=1)
    assert "process 1 trains on other data or parameters than process 0" in said
    said = together(2, {**BASE, "fan_in": 8}, tmp_path / "m", code=1)
    assert "an output layer with fan_in is trained by one process, not by 2" in said
