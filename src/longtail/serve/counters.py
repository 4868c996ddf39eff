"""Numbers for Prometheus, summed over worker processes.

Every process adds to a row of its own in a file that all of them map; ``render`` sums the rows. No
locks: a row has one writer, and a float64 is written at once. The rows of processes that have died
stay, as counters must never fall. One process alone needs no file.
"""

from __future__ import annotations

import bisect
import fcntl
import mmap
import os
import tempfile

import numpy as np

__all__ = ["BUCKETS", "Counters", "make_file"]

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)  # seconds
_MOST_PROCESSES = 256  # over the life of a server, those that died included
_PATHS = (
    "/predict",
    "/explain",
    "/labels",
    "/health",
    "/version",
    "/metrics",
    "/report",
    "/model",
    "other",
)
_CLASSES = ("2xx", "3xx", "4xx", "5xx")
_NAMES = (
    *(f"requests {path} {status}" for path in _PATHS for status in _CLASSES),
    *(f"seconds up to {bound}" for bound in (*BUCKETS, "+Inf")),  # and above the one before
    "seconds sum",
    "texts",
    "explanations",
    "batches",
    "refused",
    "timeouts",
    "reloads",
    "reload_failures",
)
_AT = {name: i for i, name in enumerate(_NAMES)}
_FIRST_BUCKET = _AT[f"seconds up to {BUCKETS[0]}"]
_BYTES = 8 * (1 + _MOST_PROCESSES * len(_NAMES))  # the first number counts the rows in use


def make_file() -> str | None:
    """Return a file for the worker processes of one server; None where the disk has no room for
    it.
    """
    descriptor, path = tempfile.mkstemp(prefix="longtail-counters-")
    try:
        # Room is taken now: writing to a mapped page that the disk has no room for kills.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, _BYTES)
        else:
            os.write(descriptor, bytes(_BYTES))
    except OSError:
        os.unlink(path)
        return None
    finally:
        os.close(descriptor)
    return path


class Counters:
    """Counters of this process, and the sums over all."""

    def __init__(self, path: str | None = None) -> None:
        self.all = np.zeros((1, len(_NAMES)))
        self.own = self.all[0]
        self.used: np.ndarray = np.ones(1)
        if path is not None:
            self._map(path)

    def _map(self, path: str) -> None:
        with open(path, "r+b") as file:
            numbers = np.frombuffer(mmap.mmap(file.fileno(), _BYTES), np.float64)
            fcntl.flock(file, fcntl.LOCK_EX)
            row = int(numbers[0]) % _MOST_PROCESSES
            numbers[0] += 1
            fcntl.flock(file, fcntl.LOCK_UN)
        self.used = numbers[:1]
        self.all = numbers[1:].reshape(_MOST_PROCESSES, len(_NAMES))
        self.own = self.all[row]

    def add(self, name: str, amount: float = 1.0) -> None:
        self.own[_AT[name]] += amount

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        known = path if path in _PATHS else "other"
        self.add(f"requests {known} {min(max(status // 100, 2), 5)}xx")
        if known in ("/predict", "/explain") and status < 300:
            self.own[_FIRST_BUCKET + bisect.bisect_left(BUCKETS, seconds)] += 1.0
            self.add("seconds sum", seconds)

    def total(self, name: str) -> float:
        return float(self.all[:, _AT[name]].sum())

    def render(self, gauges: dict[str, float]) -> str:
        """Return the text format of Prometheus."""
        lines = ["# HELP longtail_requests_total Answered requests.", _type("requests_total")]
        for path in _PATHS:
            for status in _CLASSES:
                value = self.total(f"requests {path} {status}")
                if value:
                    where = f'path="{path}",status="{status}"'
                    lines.append(f"longtail_requests_total{{{where}}} {value:.0f}")
        lines += [
            "# HELP longtail_predict_seconds Time of successful predictions and explanations.",
            _type("predict_seconds", "histogram"),
        ]
        count = 0.0
        for bound in (*BUCKETS, "+Inf"):
            count += self.total(f"seconds up to {bound}")
            lines.append(f'longtail_predict_seconds_bucket{{le="{bound}"}} {count:.0f}')
        lines.append(f"longtail_predict_seconds_sum {self.total('seconds sum'):.6f}")
        lines.append(f"longtail_predict_seconds_count {count:.0f}")
        for name in _NAMES[_AT["texts"] :]:
            lines += [_type(f"{name}_total"), f"longtail_{name}_total {self.total(name):.0f}"]
        for name, number in gauges.items():
            lines += [_type(name, "gauge"), f"longtail_{name} {number:.0f}"]
        return "\n".join(lines) + "\n"


def _type(name: str, kind: str = "counter") -> str:
    return f"# TYPE longtail_{name} {kind}"
