"""Tasks on workers: finished parts stay, lost ones are done again, and all end when told to."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import engine_tasks
import pytest
from joblib import parallel_config

from longtail.distributed import engine, tasks
from longtail.distributed.lease import Lease, Stopped
from longtail.distributed.tasks import Task, finish, workers


@pytest.fixture
def two_workers() -> Iterator[None]:
    with parallel_config("loky", n_jobs=2):
        yield


def make(run: Callable[..., None], folder: Path, *names: str) -> list[Task]:
    return [Task(name, run, (str(folder), name)) for name in names]


def test_workers_are_those_of_joblib() -> None:
    assert workers() is None, "without a configuration, everything is done here"
    with parallel_config("loky", n_jobs=2):
        assert workers() == 2
    with parallel_config("loky", n_jobs=1):
        assert workers() is None
    with parallel_config("threading", n_jobs=2):
        assert workers() is None, "the core has threads of its own"


@pytest.mark.usefixtures("two_workers")
def test_tasks_run_in_other_processes(tmp_path: Path) -> None:
    finish(make(engine_tasks.leave, tmp_path, *"abcdef"), tmp_path, what="letters")
    by = {path.read_text() for path in tmp_path.glob("by-*")}
    assert len(list(tmp_path.glob("by-*"))) == 6
    assert f"{os.getpid()}\n" not in by
    assert not list(tmp_path.glob("running-*"))


@pytest.mark.usefixtures("two_workers")
def test_nobody_waits_for_a_slow_worker(tmp_path: Path) -> None:
    others = [f"part{i}" for i in range(12)]
    slow = Task("slow", engine_tasks.wait_for, (str(tmp_path), "slow", others))
    quick = [Task(name, engine_tasks.leave, (str(tmp_path), name)) for name in others]
    finish([slow, *quick], tmp_path, what="letters")
    by = {(tmp_path / f"by-{name}").read_text() for name in others}
    assert by.isdisjoint({(tmp_path / "by-slow").read_text()})


@pytest.mark.usefixtures("two_workers")
def test_the_part_of_a_lost_worker_is_done_again(tmp_path: Path) -> None:
    plain = make(engine_tasks.leave, tmp_path, "a", "b", "c")
    with pytest.warns(UserWarning, match="letters: a worker was lost .* start again"):
        finish([*plain, *make(engine_tasks.die_once, tmp_path, "d")], tmp_path, what="letters")
    assert (tmp_path / "d").is_dir() and (tmp_path / "died-d").exists()


@pytest.mark.usefixtures("two_workers")
@pytest.mark.filterwarnings("ignore:letters. a worker was lost")
def test_an_engine_that_always_fails_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="terminated"):
        finish(make(engine_tasks.die, tmp_path, "a"), tmp_path, what="letters")
    assert not list(tmp_path.glob("running-*"))


@pytest.mark.usefixtures("two_workers")
def test_an_error_ends_the_other_tasks_and_comes_back(tmp_path: Path) -> None:
    begun = time.monotonic()
    both = [*make(engine_tasks.wait, tmp_path, "a"), *make(engine_tasks.fail, tmp_path, "b")]
    with pytest.raises(OSError, match="No space left") as caught:
        finish(both, tmp_path, what="letters")
    assert caught.value.errno == 28
    assert "part 'b' failed on" in str(caught.value.__cause__)
    assert time.monotonic() - begun < 50, "the waiting task was not stopped"


@pytest.mark.usefixtures("two_workers")
def test_a_folder_that_workers_do_not_see_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_PATIENCE", 0.2)
    with pytest.raises(FileNotFoundError, match=r"part 'a', does not see .* all machines share"):
        finish(make(engine_tasks.vanish, tmp_path, "a", "b"), tmp_path, what="letters")


def test_another_version_is_refused(tmp_path: Path) -> None:
    lease = Lease.begin(tmp_path)
    (task,) = make(engine_tasks.leave, tmp_path, "a")
    outcome = tasks._attempt(task, lease, {**tasks._about(), "version": "0.0.1"})
    assert not (tmp_path / "a").exists()
    with pytest.raises(RuntimeError, match=r"the caller has 0\.0\.1 .* same version everywhere"):
        raise outcome.error  # type: ignore[misc]


def test_a_lease_that_is_gone_stops_a_task(tmp_path: Path) -> None:
    lease = Lease.begin(tmp_path)
    lease.check()
    Lease.end_all(tmp_path)
    with pytest.raises(Stopped):
        Lease(lease.path).check()
    (task,) = make(engine_tasks.leave, tmp_path, "a")
    assert tasks._attempt(task, Lease(lease.path), tasks._about()).stopped


def test_an_error_that_cannot_travel_keeps_its_text() -> None:
    class Local(Exception):
        pass

    assert str(tasks._portable(Local("what it said"))) == "Local: what it said"


def test_unknown_and_missing_engines_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ValueError, match="engine must be one of loky, ray, dask, spark, got 'slurm'"
    ):
        engine("slurm")
    for name, package in (("ray", "ray"), ("dask", "distributed"), ("spark", "pyspark")):
        for module in [package, *(each for each in sys.modules if each.startswith(f"{package}."))]:
            monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=rf"'{package}'.*pip install 'longtail\[{name}\]'"):
            engine(name)
