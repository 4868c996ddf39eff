"""The one door to the compiled core: everything else imports the kernels from here.

Sparse matrices cross as four arguments (``csr_args``); thread counts are resolved once
(``n_threads``); long calls take a ``progress`` callable, called about ten times a second from the
calling thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail import _core

__all__ = ["core", "csr_args", "n_threads", "native_info"]

core = _core


def csr_args(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """``(indptr int64, indices int32, values float32, n_cols)``, copied only where it must be."""
    return (
        np.ascontiguousarray(matrix.indptr, dtype=np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=np.float32),
        int(matrix.shape[1]),
    )


def n_threads(n_jobs: int | None) -> int:
    """Threads for scikit-learn's ``n_jobs``: None and -1 are all cores, -2 all but one."""
    if n_jobs is None:
        n_jobs = -1
    if n_jobs == 0:
        raise ValueError("n_jobs is 0: give a positive number of threads, or -1 for all cores")
    return int(_core.resolve_threads(int(n_jobs)))


def native_info() -> dict[str, Any]:
    """What the core runs on here: instruction set in use, the best available, threads."""
    return {
        "isa": _core.active_isa(),
        "best_isa": _core.best_isa(),
        "threads": _core.resolve_threads(-1),
    }
