"""Time, processor time and memory of a step, child processes included."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Spent", "folder_megabytes", "peak_megabytes", "spent", "watch_children"]


@dataclass
class Spent:
    """``wall`` and ``cpu`` seconds; cpu is user and system time, of child processes too."""

    wall: float = 0.0
    cpu: float = 0.0


def _children() -> set[int]:
    """Process ids of the living children; none where there is no /proc."""
    lists = (task.read_text() for task in Path("/proc/self/task").glob("*/children"))
    return {int(pid) for pids in lists for pid in pids.split()}


def _cpu_seconds() -> float:
    """Of this process, of the children that have ended, and of those that live."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    for pid in _children():
        try:  # the name, in parentheses, may hold spaces; user and system ticks are fields 14, 15
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


@contextmanager
def spent() -> Iterator[Spent]:
    """Fills in what the block took when it ends."""
    result = Spent()
    wall, cpu = time.perf_counter(), _cpu_seconds()
    yield result
    result.wall, result.cpu = time.perf_counter() - wall, _cpu_seconds() - cpu


def peak_megabytes(pid: int | str = "self") -> float:
    """The largest resident size of a process so far, 0 where it is gone.

    ``ru_maxrss`` would do, but Linux hands it on from the process that started this one.
    """
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    if pid != "self" or sys.platform == "linux":
        return 0.0
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


@contextmanager
def watch_children(every: float = 0.2) -> Iterator[dict[int, float]]:
    """Peak megabytes of each child process that lives during the block, by process id.

    Sampled, Linux only. Pages that processes share are counted in each of them.
    """
    peaks: dict[int, float] = {}
    done = threading.Event()

    def look() -> None:
        while not done.wait(every):
            for pid in _children():
                peaks[pid] = max(peaks.get(pid, 0.0), peak_megabytes(pid))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


def folder_megabytes(folder: Path) -> float:
    """Size of all files below a folder."""
    files = (os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)
    return sum(map(os.path.getsize, files)) / 1e6
