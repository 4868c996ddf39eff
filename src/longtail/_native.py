"""The one door to the compiled core: everything else imports the kernels from here.

Sparse matrices cross as one tuple (``csr_args``); thread counts are resolved once
(``n_threads``); long calls take a ``progress`` callable, called about ten times a second from the
calling thread.
"""

from __future__ import annotations

import functools
import numbers
from typing import Any

import numpy as np

import longtail._core as _core

__all__ = ["core", "csr_args", "n_threads", "native_info"]

core = _core

_MOST_THREADS = 1024


def csr_args(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return ``(indptr int64, indices int32, values float32, n_cols)`` of a canonical CSR matrix,
    copying only where it must.
    """
    return (
        np.ascontiguousarray(matrix.indptr, dtype=np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=np.float32),
        int(matrix.shape[1]),
    )


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for scikit-learn's ``n_jobs``: None and -1 are all cores, -2 all
    but one.

    0 is refused. More than 1024 are never started: results do not depend on the number.
    """
    if n_jobs is None:
        return _resolved(-1)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral):
        raise TypeError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs is 0: give a positive number of threads, or -1 for all cores")
    return _resolved(max(-_MOST_THREADS, min(_MOST_THREADS, int(n_jobs))))


@functools.cache  # asking the system how many cores there are takes a good part of a small search
def _resolved(n_jobs: int) -> int:
    return int(_core.resolve_threads(n_jobs))


def native_info() -> dict[str, Any]:
    """Return what the compiled core runs on this machine: instruction set in use, the best
    available, threads.
    """
    return {
        "isa": _core.active_isa(),
        "best_isa": _core.best_isa(),
        "threads": _core.resolve_threads(-1),
    }
