"""Text models trained by several processes together: what one process learns.

The processes are started once with two and once with four, and do all trainings in turn.
"""

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

TRAIN = Path(__file__).with_name("group_training.py")
BASE: dict[str, Any] = {"encoder": "average", "epochs": 3, "batch_size": 16, "dropout": 0.2}
# Mined from the second epoch on, in batches of similar texts.
PAIRS: dict[str, Any] = {**BASE, "mine_from": 2, "period": 2, "negatives": 3, "width": 32}
# Levels of 3, 8 and 23 nodes.
LEVELS: dict[str, Any] = {
    "encoder": "average",
    "batch_size": 16,
    "dropout": 0.2,
    "steps": [6, 6, 6],
    "leaf": 3,
    "branching": 3,
    "min_codes": 2,
    "most_active": 9,
}

# name: number of processes, model, settings
ALIKE: dict[str, tuple[int, str, dict[str, Any]]] = {
    "sigmoid-2": (2, "TextNetwork", {**BASE, "loss": "sigmoid"}),
    "sigmoid-4": (4, "TextNetwork", {**BASE, "loss": "sigmoid"}),
    "softmax-4": (
        4,
        "TextNetwork",
        {**BASE, "loss": "softmax", "patience": 1, "validation": 0.2, "epochs": 5},
    ),
    "sgd-2": (
        2,
        "TextNetwork",
        {**BASE, "preset": "renee", "dropout": 0.0, "batch_size": 23},
    ),
    "unidec-2": (2, "UniDEC", {**PAIRS, "mine_by": "both", "validation": 0.2, "patience": 9}),
    "unidec-4": (4, "UniDEC", {**PAIRS, "epochs": 4}),
    "levels-2": (2, "XRTransformer", LEVELS),
    "levels-4": (4, "XRTransformer", LEVELS),
    "dual-2": (2, "DualEncoder", {**PAIRS, "loss": "triplet"}),
}
GOING_ON = {
    "TextNetwork": {**BASE, "epochs": 4, "validation": 0.2, "patience": 9},
    "UniDEC": {**PAIRS, "epochs": 4, "validation": 0.2, "patience": 9},
    "XRTransformer": LEVELS,
}
REFUSED = {
    "other-rows": {"model": "TextNetwork", "settings": BASE, "rows": 60},
    "other-pairs": {"model": "UniDEC", "settings": BASE, "rows": 60},
    "other-levels": {"model": "XRTransformer", "settings": LEVELS, "rows": 60},
    "other-levels-before": {
        "model": "XRTransformer",
        "settings": {**LEVELS, "batch_size": 8},
        "checkpoint": "XRTransformer-c",
    },
    "fan-in": {"model": "TextNetwork", "settings": {**BASE, "fan_in": 8}},
}


class Aborted(Exception):
    """Gloo ended a process: now and then, on a busy machine, where a training is broken off while
    messages are under way.
    """


def torchrun(n: int, *script: object) -> None:
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
    if "(SIGABRT)" in done.stderr:
        raise Aborted(done.stderr[-20_000:])
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all that processes trained together."""
    try:
        return train_together(tmp_path_factory.mktemp("together"))
    except Aborted as why:
        print(why)
        return train_together(tmp_path_factory.mktemp("together-again"))


def train_together(folder: Path) -> Path:
    jobs: dict[int, list[dict[str, Any]]] = {2: [], 4: []}
    for name, (n, model, settings) in ALIKE.items():
        still = model != "TextNetwork"
        jobs[n].append({"model": model, "settings": settings, "out": name, "still": still})
    for model, settings in GOING_ON.items():
        job = {"model": model, "settings": settings, "checkpoint": f"{model}-c", "still": True}
        first = 1 if model == "XRTransformer" else 2
        jobs[2].append({**job, "stop_after": first, "out": f"{model}-after-2"})
        jobs[4].append({**job, "stop_after": 1, "out": f"{model}-after-3"})
    every = {"save_all": True, "settings": {**BASE, "encoder": "convolution", "epochs": 2}}
    jobs[2] += [{**every, "model": m, "out": f"{m}-every"} for m in ("TextNetwork", "UniDEC")]
    levels = {**LEVELS, "encoder": "convolution"}
    jobs[2].append(
        {**every, "model": "XRTransformer", "out": "XRTransformer-every", "settings": levels}
    )
    jobs[2] += [{**job, "refused": True, "out": name} for name, job in REFUSED.items()]
    for n, some in jobs.items():
        for job in some:
            for place in ("out", "checkpoint"):
                if place in job:
                    job[place] = str(folder / job[place])
        (folder / f"{n}.json").write_text(json.dumps(some))
        torchrun(n, TRAIN, folder / f"{n}.json")
    return folder


def check_alike(one: Any, other: Any) -> None:
    if isinstance(one, lt.DualEncoder):
        arrays = [(one.heads_[name], other.heads_[name]) for name in one.heads_]
        arrays.append((one.label_vectors_, other.label_vectors_))
    elif isinstance(one, lt.XRTransformer):
        arrays = []
        losses = [[r["loss"], r["first_loss"]] for m in (one, other) for r in m.history_]
        np.testing.assert_allclose(*np.split(np.array(losses), 2), rtol=1e-5)
    else:
        arrays = [(getattr(one, n), getattr(other, n)) for n in ("output_weights_", "output_bias_")]
    for a, b in arrays:
        np.testing.assert_allclose(a, b, atol=1e-4)
    texts, _ = problem()
    # Where a gradient is next to nothing, Adam makes as much of its rounding as of large ones; one
    # process that takes its batches in pieces differs by as much.
    within = 2e-4 if isinstance(one, lt.XRTransformer) else 1e-4
    np.testing.assert_allclose(one.embed(texts), other.embed(texts), atol=within)
    a, b = one.predict_topk(texts, 3), other.predict_topk(texts, 3)
    assert (a.indices == b.indices).mean() > 0.98
    np.testing.assert_allclose(a.scores, b.scores, atol=1e-4)


@pytest.mark.parametrize("name", ALIKE)
def test_processes_together_learn_what_one_does(name: str, trained: Path) -> None:
    n, model, settings = ALIKE[name]
    if model == "TextNetwork":  # draws in pieces as they do
        alone = train(model, {**settings, "micro_batch": -(-settings["batch_size"] // n)})
    else:
        alone = train(model, settings, still=True)
    found = lt.load(trained / name)
    assert len(found.history_) == len(alone.history_)
    if model != "XRTransformer":
        assert found.best_epoch_ == alone.best_epoch_
    check_alike(found, alone)


@pytest.mark.parametrize("model", GOING_ON)
def test_a_checkpoint_goes_on_with_another_number_of_processes(model: str, trained: Path) -> None:
    """Two epochs by two processes, one more by four, the last by one: what one process learns. Of
    levels, one each.
    """
    levels = model == "XRTransformer"
    for when, shares in (("after-2", [12, 11]), ("after-3", [6, 6, 6, 5])):
        assert not (trained / f"{model}-{when}").exists()
        for rank, share in enumerate(shares):  # labels of every process
            assert levels or int((trained / f"{model}-{when}-{rank}").read_text()) == share
    alone = train(model, GOING_ON[model], still=True)
    from_there = train(model, GOING_ON[model], checkpoint=str(trained / f"{model}-c"), still=True)
    assert len(from_there.history_) == (3 if levels else 4)
    assert levels or from_there.best_epoch_ == alone.best_epoch_
    check_alike(from_there, alone)


@pytest.mark.parametrize("model", ["TextNetwork", "UniDEC", "XRTransformer"])
def test_every_process_ends_with_the_same_model(model: str, trained: Path) -> None:
    """Also with norms over batches, of which each process sees another share."""
    one, other = (lt.load(trained / f"{model}-every{rank}") for rank in ("", "-1"))
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


def test_processes_that_disagree_are_refused(trained: Path) -> None:
    disagree = "process 1 trains on other data or parameters than process 0"
    alone = "an output layer with fan_in is trained by one process, not by 2"
    said = {"other-rows": disagree, "other-pairs": disagree, "other-levels": disagree}
    said |= {"fan-in": alone, "other-levels-before": "levels is no checkpoint of this training"}
    for name, expected in said.items():
        for rank in range(2):
            assert expected in (trained / f"{name}-{rank}").read_text()
