"""``finish``: tasks on joblib's workers, again and again until every part is there."""

from __future__ import annotations

import os
import pickle
import platform
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtail import __version__
from longtail._native import native_info
from longtail._progress import Progress
from longtail.distributed.lease import Lease, Stopped

__all__ = ["Task", "finish", "workers"]

_IDLE_ROUNDS = 3  # so often the engine may fail without having finished a single part
_PATIENCE = 10.0  # seconds until a part that another machine has written must be seen here


@dataclass(frozen=True)
class Task:
    """``run(*args, watch=…)`` leaves the finished part ``name`` in the shared folder.

    ``run`` is a function of a module, ``args`` are small. It calls ``watch()`` now and then, at
    least every few seconds, which raises an exception once there is no reason to go on.
    """

    name: str
    run: Callable[..., None]
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class _Outcome:
    name: str
    host: str
    stopped: bool = False
    error: Exception | None = None
    trace: str = ""


def workers() -> int | None:
    """Return joblib's number of workers (-1: all), or None where work is to be done right here.

    Here is where no ``joblib.parallel_config`` says otherwise, where it names one worker of this
    machine, and where workers are threads: the core has threads of its own.
    """
    from joblib import effective_n_jobs
    from joblib.parallel import get_active_backend

    backend, n_jobs = get_active_backend()
    if getattr(backend, "supports_sharedmem", False):
        return None
    if type(backend).__module__.startswith("joblib._parallel_backends"):  # joblib's own processes
        number = int(effective_n_jobs(n_jobs))
        return number if number > 1 else None
    return -1 if n_jobs is None else int(n_jobs)


def finish(tasks: Sequence[Task], folder: str | os.PathLike[str], *, what: str) -> None:
    """Run ``tasks`` on the workers of joblib until each has left its part in ``folder``.

    A failure of the engine (a lost worker) is a warning, and tasks whose part is missing run again,
    unless it happens three times in a row without a finished part. An exception of a task ends the
    others and is raised here; parts that were finished stay.

    Raises FileNotFoundError if workers do not see the folder, and RuntimeError if their longtail is
    another than the caller's.
    """
    place = Path(folder).absolute()
    left, idle = list(tasks), 0
    with Progress(what) as progress:
        while left:
            lost = _round(left, place, progress, len(tasks))
            missing = [task for task in left if not (place / task.name).is_dir()]
            if lost is not None:
                idle = 0 if len(missing) < len(left) else idle + 1
                if idle == _IDLE_ROUNDS:
                    raise lost
                if missing:
                    why = f"{type(lost).__name__}: {lost}".partition("\n")[0]
                    warnings.warn(
                        f"{what}: a worker was lost ({why}); "
                        f"{len(missing)} of {len(tasks)} parts are not finished and start again",
                        stacklevel=3,
                    )
            left = missing
    Lease.end_all(place)  # those of calls that were killed: there is nothing left to do for them


def _round(tasks: Sequence[Task], place: Path, progress: Progress, total: int) -> Exception | None:
    """Run every task once; return the engine's failure, if there was one."""
    from joblib import Parallel, delayed

    class Shown(Parallel):  # type: ignore[misc]
        def print_progress(self) -> None:
            progress(total - len(tasks) + self.n_completed_tasks, total)

    about = _about()
    lease = Lease.begin(place)
    calls = [delayed(_attempt)(task, lease, about) for task in tasks]
    try:
        outcomes = Shown(n_jobs=workers(), batch_size=1)(calls)
    except Exception as error:
        return error
    finally:
        held = lease.held
        lease.end()
    for outcome in outcomes:
        if outcome.error is not None:
            where = f"part {outcome.name!r} failed on {outcome.host}:\n{outcome.trace}"
            raise outcome.error from RuntimeError(where)
    _wait_for([place / outcome.name for outcome in outcomes if not outcome.stopped])
    for outcome in outcomes:
        if not (place / outcome.name).is_dir():
            if outcome.stopped and not held:
                raise RuntimeError(f"tasks were stopped: somebody removed {lease.path}")
            raise _unseen(place, outcome)
    return None


def _attempt(task: Task, lease: Lease, about: dict[str, str]) -> _Outcome:
    """Run a task on a worker. Never raises: what an engine makes of exceptions differs."""
    host = platform.node()
    try:
        lease.check()
        if _about() != about:
            raise RuntimeError(
                f"{host} has longtail {_told(_about())}, the caller has {_told(about)}: parts "
                "would not fit together. Install the same version everywhere; the environment "
                "variable LONGTAIL_SIMD chooses the instructions"
            )
        task.run(*task.args, watch=lease.check)
    except Stopped:
        return _Outcome(task.name, host, stopped=True)
    except Exception as error:
        lease.end()
        return _Outcome(task.name, host, error=_portable(error), trace=traceback.format_exc())
    return _Outcome(task.name, host)


def _about() -> dict[str, str]:
    return {"version": __version__, "isa": str(native_info()["isa"])}


def _told(about: dict[str, str]) -> str:
    return f"{about['version']} ({about['isa']})"


def _portable(error: Exception) -> Exception:
    """Return the error, or its text where it cannot travel."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _wait_for(paths: Sequence[Path]) -> None:
    """Network file systems show what others have written a little later."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and not all(path.is_dir() for path in paths):
        time.sleep(0.1)


def _unseen(place: Path, outcome: _Outcome) -> FileNotFoundError:
    return FileNotFoundError(
        f"{outcome.host}, which worked on part {outcome.name!r}, does not see the files of "
        f"{place}: name a checkpoint folder on a disk that all machines share, under the same path"
    )
