"""Models trained by workers have the bits of those trained here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engine_tasks
import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config

import longtail as lt
from longtail.base import Ranker
from longtail.calibrate.out_of_fold import cross_fit
from longtail.codes import kept_repetitions
from longtail.linear.train import elsewhere

LABELS = 9_000  # more than two chunks, so that a flat model has parts


@pytest.fixture(scope="module")
def rows() -> tuple[sp.csr_matrix, sp.csr_matrix]:
    rng = np.random.default_rng(0)
    X = sp.random(120, 40, density=0.2, random_state=0, format="csr", dtype=np.float32)
    labels = rng.integers(0, LABELS, (120, 3))
    Y = sp.csr_matrix(
        (np.ones(360, np.float32), (np.repeat(np.arange(120), 3), labels.ravel())), (120, LABELS)
    )
    Y.data[:] = 1
    return X, Y


@pytest.fixture
def two_workers() -> Iterator[None]:
    with parallel_config("loky", n_jobs=2):
        yield


def same(first: Any, second: Any) -> bool:
    return len(first.layers_) == len(second.layers_) and all(
        np.array_equal(a.arrays[name], b.arrays[name])
        for a, b in zip(first.layers_, second.layers_, strict=True)
        for name in a.arrays
    )


MAKERS = {
    "OneVsAll": lambda: lt.OneVsAll(max_iter=3),
    "OneVsAll(logistic)": lambda: lt.OneVsAll(loss="logistic", max_iter=2, threshold=0.05),
    "OneVsAll(missing)": lambda: lt.OneVsAll(max_iter=3, missing_labels=lt.JainPropensity()),
    "XRLinear": lambda: lt.XRLinear(max_iter=3),
    "XRLinear(man)": lambda: lt.XRLinear(
        max_iter=3, tree=lt.tree.LabelTree(level_sizes=[5, 60]), negatives="tfn+man"
    ),
    "XRLinear(limit)": lambda: lt.XRLinear(max_iter=3, memory_limit="8GB"),
    "XRLinear(counts)": lambda: lt.XRLinear(max_iter=3, cost_weights="counts", n_jobs=2),
}


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("maker", MAKERS)
def test_workers_train_the_same_bits(maker: str, rows: Any, tmp_path: Path) -> None:
    X, Y = rows
    there = MAKERS[maker]().fit(X, Y, checkpoint=tmp_path / "c")
    here = MAKERS[maker]().fit(X, Y)
    assert same(there, here)
    left = {path.name for path in (tmp_path / "c").iterdir()}
    assert not {name for name in left if "problem" in name} - {"problem.json"}
    assert "rows" not in left and not any(name.startswith("running") for name in left)


@pytest.mark.usefixtures("two_workers")
def test_rows_of_two_blocks_and_weights_travel(rows: Any, tmp_path: Path) -> None:
    X, Y = rows
    rng = np.random.default_rng(1)
    both = lt.features.beside(X, rng.standard_normal((120, 5)).astype(np.float32))
    weight = rng.random(120)
    there = lt.OneVsAll(max_iter=3).fit(both, Y, sample_weight=weight, checkpoint=tmp_path / "c")
    assert same(there, lt.OneVsAll(max_iter=3).fit(both, Y, sample_weight=weight))


def test_parts_are_trained_by_workers_and_nowhere_else(
    rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = rows
    from longtail.linear.train import parts

    def nowhere(*args: Any) -> None:
        raise AssertionError("trained here")

    monkeypatch.setattr(parts, "train_part", nowhere)
    with parallel_config("loky", n_jobs=2):
        there = lt.OneVsAll(max_iter=3).fit(X, Y, checkpoint=tmp_path / "c")
    assert len(list((tmp_path / "c").glob("labels-*"))) == 3
    assert same(there, lt.OneVsAll(max_iter=3).fit(X, Y))


@pytest.mark.usefixtures("two_workers")
def test_a_lost_worker_costs_its_own_part(
    rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = rows
    monkeypatch.setattr(elsewhere, "_train", engine_tasks.train_or_die)
    with pytest.warns(UserWarning, match="a worker was lost"):
        there = lt.OneVsAll(max_iter=3).fit(X, Y, checkpoint=tmp_path / "c")
    assert (tmp_path / "c" / "died").exists()
    assert same(there, lt.OneVsAll(max_iter=3).fit(X, Y))


def test_parts_of_one_machine_and_of_workers_go_together(rows: Any, tmp_path: Path) -> None:
    X, Y = rows
    whole = lt.OneVsAll(max_iter=3).fit(X, Y, checkpoint=tmp_path / "c")
    kept = (tmp_path / "c" / "labels-0" / "manifest.json").stat().st_mtime_ns
    for path in (tmp_path / "c" / "labels-4096").iterdir():
        path.unlink()
    (tmp_path / "c" / "labels-4096").rmdir()
    with parallel_config("loky", n_jobs=2):
        there = lt.OneVsAll(max_iter=3).fit(X, Y, checkpoint=tmp_path / "c")
    assert same(there, whole)
    assert (tmp_path / "c" / "labels-0" / "manifest.json").stat().st_mtime_ns == kept


@pytest.mark.usefixtures("two_workers")
def test_an_ensemble_keeps_its_members_apart(rows: Any, tmp_path: Path) -> None:
    X, Y = rows
    pair = lt.Ensemble(models=[lt.XRLinear(max_iter=3, random_state=seed) for seed in (0, 1)])
    there = pair.fit(X, Y, checkpoint=tmp_path / "c").members_
    here = lt.Ensemble(models=pair.models).fit(X, Y).members_
    assert all(same(a, b) for a, b in zip(there, here, strict=True))
    assert list((tmp_path / "c" / "member1").glob("level*"))


CTRL_C = """
import sys, numpy as np, scipy.sparse as sp, longtail as lt
from joblib import parallel_config
rng = np.random.default_rng(0)
X = sp.random(20_000, 2_000, density=0.05, random_state=0, format="csr", dtype=np.float32)
Y = [[int(label)] for label in rng.permutation(40_000)[:20_000]]
with parallel_config("loky", n_jobs=2):
    lt.OneVsAll(loss="logistic", tolerance=1e-6).fit(X, Y, checkpoint=sys.argv[1])
"""


def test_ctrl_c_ends_the_workers(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    run = subprocess.Popen(
        [sys.executable, "-c", CTRL_C, str(folder)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        while not list(folder.glob("running-*")) and time.monotonic() < deadline:
            assert run.poll() is None, run.stderr.read()  # type: ignore[union-attr]
            time.sleep(0.1)
        time.sleep(3)  # workers start
        run.send_signal(signal.SIGINT)  # the caller alone: workers are elsewhere
        _, told = run.communicate(timeout=60)
        assert "KeyboardInterrupt" in told
        assert not list(folder.glob("running-*")) and not (folder / "rows").exists()
        while _members(run.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not _members(run.pid), "workers are still there"
    finally:
        if _members(run.pid):
            os.killpg(run.pid, signal.SIGKILL)


def _members(group: int) -> list[int]:
    """Processes of a group that have not ended."""
    out = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            out.append(int(path.parent.name))
    return out


@pytest.mark.parametrize("make", [lt.baselines.NearestNeighbors, lambda: lt.XRLinear(max_iter=3)])
def test_cross_fitting_gives_the_same_answers(make: Any) -> None:
    data = lt.data.make_longtail(n=300, d=60, L=30, random_state=0).train
    weight = np.random.default_rng(0).random(data.X.shape[0])
    options = {"sample_weight": weight} if isinstance(make(), lt.XRLinear) else {}
    here = cross_fit(make(), data.X, data.Y, k=3, folds=3, **options)
    with parallel_config("loky", n_jobs=2):
        there = cross_fit(make(), data.X, data.Y, k=3, folds=3, **options)
    assert there == here


class Asked(Ranker):
    """Answers with the number of the process that fitted it."""

    def _fit(self, X: Any, Y: Any) -> None:
        self.process_ = os.getpid()

    def _predict_topk(self, X: Any, k: int) -> lt.TopK:
        scores = np.full((X.shape[0], k), self.process_, np.float32)
        return lt.TopK(np.tile(np.arange(k, dtype=np.int32), (X.shape[0], 1)), scores)


def test_cross_fitting_is_done_by_workers() -> None:
    with parallel_config("loky", n_jobs=2):
        there = cross_fit(
            Asked(), np.eye(4, dtype=np.float32), sp.identity(4, "f4", "csr"), k=2, folds=2
        )
    assert (there.scores != os.getpid()).all()


def mach(**params: Any) -> lt.MACH:
    return lt.MACH(**{"estimator": "linear", "n_buckets": 20, "n_repetitions": 4, **params})


def same_mach(first: lt.MACH, second: lt.MACH) -> bool:
    return first.repetitions_.keys() == second.repetitions_.keys() and all(
        same(first.repetitions_[r], second.repetitions_[r]) for r in first.repetitions_
    )


@pytest.mark.parametrize("params", [{}, {"hashed_features": 32}], ids=["plain", "hashed"])
def test_repetitions_of_mach_are_trained_by_workers(
    params: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lt.data.make_longtail(n=300, d=60, L=80, random_state=0).train
    whole = mach(**params).fit(data.X, data.Y)
    with monkeypatch.context() as here, parallel_config("loky", n_jobs=2):
        here.setattr(kept_repetitions.Repetition, "fit", None)  # called here, it fails
        there = mach(**params).fit(data.X, data.Y, checkpoint=tmp_path / "c")
    assert same_mach(there, whole)
    left = {path.name for path in (tmp_path / "c").iterdir()}
    assert left == {"problem.json", *(f"repetition{r}" for r in range(4))}


def test_repetitions_that_are_kept_are_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lt.data.make_longtail(n=300, d=60, L=80, random_state=0).train
    whole = mach().fit(data.X, data.Y)
    mach().fit(data.X, data.Y, repetitions=[1, 2], checkpoint=tmp_path / "c")
    trained = []
    fit = kept_repetitions.Repetition.fit

    def record(self: Any, *args: Any) -> Any:
        trained.append(self.number)
        return fit(self, *args)

    monkeypatch.setattr(kept_repetitions.Repetition, "fit", record)
    again = mach().fit(data.X, data.Y, checkpoint=tmp_path / "c")
    assert trained == [0, 3]
    assert same_mach(again, whole)
    assert again.predict_topk(data.X, k=5) == whole.predict_topk(data.X, k=5)
    for other in (mach(random_state=1), mach(hashed_features=32), mach(n_buckets=21)):
        with pytest.raises(ValueError, match="another training"):
            other.fit(data.X, data.Y, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="another training"):
        mach().fit(2 * data.X, data.Y, checkpoint=tmp_path / "c")
