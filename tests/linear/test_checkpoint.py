"""A training cut short goes on from its last part, and ends with the same bits."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_cases import make_rows

import longtail as lt
from longtail.linear.train.level import LevelProblem, all_rows
from longtail.linear.train.parts import plan_parts
from longtail.persist.siblings import sibling

MAKERS = {
    "XRLinear": lambda: lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[3, 9])),
    "XRLinear(man)": lambda: lt.XRLinear(
        tree=lt.tree.LabelTree(level_sizes=[9]), negatives="tfn+man"
    ),
    "OneVsAll": lt.OneVsAll,
}


def same(first: Any, second: Any) -> bool:
    return len(first.layers_) == len(second.layers_) and all(
        np.array_equal(a.arrays[name], b.arrays[name])
        for a, b in zip(first.layers_, second.layers_, strict=True)
        for name in a.arrays
    )


@pytest.mark.parametrize("maker", MAKERS)
def test_parts_together_are_the_whole(maker: str, tmp_path: Path) -> None:
    X, Y = make_rows(n=200, n_labels=60)
    whole = MAKERS[maker]().fit(X, Y)
    in_parts = MAKERS[maker]().fit(X, Y, checkpoint=tmp_path / "c")
    assert same(whole, in_parts)
    assert len(list((tmp_path / "c").iterdir())) >= 2
    again = MAKERS[maker]().fit(X, Y, checkpoint=tmp_path / "c")
    assert same(whole, again)


def test_a_parent_with_very_many_children_is_cut_at_chunks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n_labels = 10_000
    X = rng.random((40, 6), dtype=np.float32)
    Y = [[int(label)] for label in rng.integers(0, n_labels, 40)]
    Y[0].append(n_labels - 1)
    whole = lt.OneVsAll(max_iter=3).fit(X, Y)
    in_parts = lt.OneVsAll(max_iter=3).fit(X, Y, checkpoint=tmp_path / "c")
    saved = sorted(path.name for path in (tmp_path / "c").glob("labels-*"))
    assert saved == ["labels-0", "labels-4096", "labels-8192"]
    assert same(whole, in_parts)


@pytest.mark.parametrize("sizes", [[5], [0, 3, 0], [4096, 4097, 1], [9000], [1] * 200])
@pytest.mark.parametrize("n_parts", [1, 3, 64])
def test_parts_cover_every_child_once(sizes: list[int], n_parts: int) -> None:
    child_ptr = np.concatenate([[0], np.cumsum(sizes)])
    rows = all_rows(4)[:, [0] * len(sizes)].tocsc()
    nothing = np.zeros(child_ptr[-1])
    problem = LevelProblem(rows, child_ptr, nothing)  # type: ignore[arg-type]
    found = plan_parts(problem, np.array([1, 2, 3, 4]), n_parts)
    assert [part.first for part in found] == [0, *(part.last for part in found[:-1])]
    assert found[-1].last == child_ptr[-1] and found[-1].bottom == len(sizes)
    for part in found:
        whole = part.first == child_ptr[part.top] and part.last == child_ptr[part.bottom]
        assert whole or part.bottom == part.top + 1
        assert whole or (part.first - child_ptr[part.top]) % 4096 == 0


def test_a_folder_of_another_training_is_refused(tmp_path: Path) -> None:
    X, Y = make_rows()
    lt.OneVsAll().fit(X, Y, checkpoint=tmp_path / "c")
    for other in (lt.OneVsAll(C=2.0), lt.OneVsAll(random_state=1), lt.XRLinear()):
        with pytest.raises(ValueError, match="another training"):
            other.fit(X, Y, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="another training"):
        lt.OneVsAll().fit(2 * X, Y, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="another training"):
        lt.OneVsAll().fit(X, Y, sample_weight=np.full(120, 2.0), checkpoint=tmp_path / "c")
    lt.OneVsAll(n_jobs=2).fit(X, Y, checkpoint=tmp_path / "c")  # threads do not matter
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="not empty"):
        lt.OneVsAll().fit(X, Y, checkpoint=tmp_path / "full")


@pytest.mark.parametrize("part", ["tree", "level-0-0", "manifest"])
def test_a_damaged_part_is_trained_again(tmp_path: Path, part: str) -> None:
    X, Y = make_rows()
    whole = lt.XRLinear().fit(X, Y, checkpoint=tmp_path / "c")
    folders = sorted(path for path in (tmp_path / "c").iterdir() if path.is_dir())
    folder = (
        folders[0] if part == "manifest" else next(f for f in folders if f.name[:4] == part[:4])
    )
    if part == "manifest":
        (folder / "manifest.json").write_bytes(b"{}")
    else:
        (folder / "arrays.bin").write_bytes(b"no")
    with pytest.warns(UserWarning, match=f"damaged part is trained again.*{folder.name}"):
        again = lt.XRLinear().fit(X, Y, checkpoint=tmp_path / "c")
    assert again.predict_topk(X, k=4) == whole.predict_topk(X, k=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is whole now
        lt.XRLinear().fit(X, Y, checkpoint=tmp_path / "c")


def test_what_lies_in_a_damaged_part_besides_is_not_removed(tmp_path: Path) -> None:
    X, Y = make_rows()
    lt.OneVsAll().fit(X, Y, checkpoint=tmp_path / "c")
    part = tmp_path / "c" / "labels-0"
    (part / "arrays.bin").write_bytes(b"no")
    (part / "letter.txt").write_text("dear")
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(OSError, match="not empty"):
        lt.OneVsAll().fit(X, Y, checkpoint=tmp_path / "c")
    assert (part / "letter.txt").exists()


def test_what_a_killed_run_left_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that was being saved: nobody will ever finish it."""
    X, Y = make_rows()
    lt.OneVsAll().fit(X, Y, checkpoint=tmp_path / "c")
    (tmp_path / "c" / "labels-0").rename(sibling(str(tmp_path / "c" / "labels-0"), ".new"))

    def refuse(seconds: float) -> None:
        raise AssertionError(f"waits {seconds} s for a save that nobody will finish")

    with monkeypatch.context() as patched:
        patched.setattr("longtail.persist.store.time.sleep", refuse)
        lt.OneVsAll().fit(X, Y, checkpoint=tmp_path / "c")
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["labels-0", "problem.json"]


NURSERY = """
import os, sys
import longtail as lt
data = lt.data.make_longtail(1200, 800, 1000, random_state=0)
for line in sys.stdin:  # a line: where the checkpoint is, and where the model goes
    checkpoint, folder = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if child == 0:
        model = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[12]), n_jobs=2)
        model.fit(data.train.X, data.train.Y, checkpoint=checkpoint).save(folder, overwrite=True)
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Trainings:
    """Trainings in processes of their own, forked off one that has the data ready."""

    def __init__(self) -> None:
        self.nursery = subprocess.Popen(
            [sys.executable, "-c", NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def run(self, checkpoint: Path, folder: Path, kill_after: float | None = None) -> int:
        """Trains and saves, or is killed in the middle; the status that the process ended with."""
        assert self.nursery.stdin and self.nursery.stdout
        self.nursery.stdin.write(f"{checkpoint}\t{folder}\n")
        self.nursery.stdin.flush()
        child = int(self.nursery.stdout.readline())
        if kill_after is not None:
            time.sleep(kill_after)
            with contextlib.suppress(ProcessLookupError):  # it is done already
                os.kill(child, signal.SIGKILL)
        return int(self.nursery.stdout.readline())

    def close(self) -> None:
        assert self.nursery.stdin
        self.nursery.stdin.close()
        self.nursery.wait(timeout=30)


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """kill -9 again and again, also while parts and the model are saved; what comes out is always
    the same. ``LONGTAIL_KILLS`` sets the number. A training that gets to its end begins anew.
    """
    trainings = Trainings()
    try:
        began = time.monotonic()
        assert trainings.run(tmp_path / "c0", tmp_path / "whole") == 0
        took = time.monotonic() - began
        whole = lt.load(tmp_path / "whole")
        n_parts = len(list((tmp_path / "c0").iterdir()))
        rng = np.random.default_rng(int(os.environ.get("LONGTAIL_KILL_SEED", "0")))
        kills = int(os.environ.get("LONGTAIL_KILLS", "6"))
        cut, killed = 0, 0
        while killed < kills or (not cut and killed < 10 * kills):
            ended = trainings.run(tmp_path / "c", tmp_path / "model", took * rng.uniform(0.05, 0.8))
            killed += ended != 0
            if (tmp_path / "model").exists():
                found = lt.load(tmp_path / "model", verify=True)
                assert same(whole, found), f"after kill {killed}"
            if ended == 0:
                shutil.rmtree(tmp_path / "c")
            elif (tmp_path / "c").exists():
                cut += 2 < len(list((tmp_path / "c").glob("[!.]*"))) < n_parts
        assert trainings.run(tmp_path / "c", tmp_path / "model") == 0
        assert same(whole, lt.load(tmp_path / "model", verify=True))
    finally:
        trainings.close()
    if not cut:  # the machine was too uneven to hit the middle of a training
        pytest.skip("no training was cut short in the middle: these kills prove nothing")


def test_weights_of_many_labels_are_told_apart(tmp_path: Path) -> None:
    """A long array prints with its middle left out: that is not what makes a training another."""
    X, Y = make_rows(n=60, n_labels=1500)
    weights = np.ones(1500)
    lt.OneVsAll(max_iter=2, positive_weight=weights).fit(X, Y, checkpoint=tmp_path / "c")
    weights[700] = 9.0
    with pytest.raises(ValueError, match="another training"):
        lt.OneVsAll(max_iter=2, positive_weight=weights).fit(X, Y, checkpoint=tmp_path / "c")
