"""How training keeps to a ``memory_limit``.

What is in memory when ``fit`` begins (the interpreter, X, Y) is given; on top come the rows scaled
to unit length, the labels of each level, and the features that labels are clustered by. Finished
parts of the model are written to temporary files, which the model maps (in the folder of the
checkpoint, or in the system's place for such files: ``TMPDIR``).
What is left is shared out: label features may be cut to their largest entries, rows are gathered
for as many tree nodes at a time as fit, and as many threads are started as have room to work in.

Rows that are mapped from a file (``load_matrix``) count for nothing: the system drops such pages
when memory is wanted elsewhere, and the scaled rows are a file as well.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._native import core
from longtail.features.mapped_rows import is_mapped

__all__ = ["MemoryPlan", "as_bytes", "plan_memory", "resident_bytes"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS.update({f"{unit}i": 1024**power for power, unit in enumerate("kmgt", start=1)})
_BATCH = 1 << 30
_FEATURES = 256


@dataclass(frozen=True)
class MemoryPlan:
    """``batch_bytes`` of gathered rows at a time; at most ``features_per_label`` for clustering;
    ``scratch_bytes`` for all threads together.
    """

    batch_bytes: int = _BATCH
    features_per_label: int = _FEATURES
    scratch_bytes: int = 1 << 62


def as_bytes(limit: int | float | str) -> int:
    """Return a number of bytes, or a text like "8GB", "500 MB" or "2GiB".

    >>> as_bytes("1.5 GB"), as_bytes("2GiB") == 2 * 2**30
    (1500000000, True)
    """
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", limit.lower())
        if not match or match[2] not in _UNITS:
            raise ValueError(f'memory_limit must be bytes or a text like "8GB", got {limit!r}')
        return int(float(match[1]) * _UNITS[match[2]])
    if not 0 < limit < float("inf"):
        raise ValueError(f"memory_limit must be positive and finite, got {limit}")
    return int(limit)


def resident_bytes(mapped: int = 0) -> int:
    """Return the memory this process occupies now; at most, where the system does not tell.

    ``mapped``: bytes of files that do not count, as far as they are in memory.
    """
    try:
        with open("/proc/self/statm") as file:
            _, resident, shared, *_ = (int(pages) for pages in file.read().split())
            return resident * resource.getpagesize() - min(mapped, shared * resource.getpagesize())
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(most) * (1 if sys.platform == "darwin" else 1024)


def plan_memory(
    limit: int | float | str | None,
    X: Any,
    Y: sp.csr_matrix,
    *,
    dual: bool = True,
    in_use: int | None = None,
) -> MemoryPlan:
    """Share out what ``limit`` leaves; refuse one that training cannot keep, and say how much it
    needs at least.
    """
    if limit is None:
        return MemoryPlan(_batch_of_many() if len(core.numa_cpus(1 << 20)) > 1 else _BATCH)
    total = as_bytes(limit)
    dense = X.dense if isinstance(X, BlockRows) else None
    X = X if dense is None else X.sparse
    entries = X.nnz if sp.issparse(X) else X.size
    mapped = sp.issparse(X) and is_mapped(X.data)
    in_use = resident_bytes(12 * entries if mapped else 0) if in_use is None else in_use
    n_labels = Y.shape[1]
    scaled = 0 if mapped else 4 * entries
    width = 0 if dense is None else dense.shape[1]
    scaled += 4 * X.shape[0] * (-(-width // 16) * 16 + 1)
    levels = 40 * Y.nnz + 64 * n_labels  # labels of two levels by column, in both orders
    fixed = in_use + scaled + levels  # the model goes to files as it is made
    # An entry, its copy while it is sorted, and the clusters'. How many features are kept decides
    # the tree, so it follows from the limit and the data alone, not from what else is in memory.
    per_feature = 20 * n_labels
    features = min(_FEATURES, max(16, int(total / 4 / per_feature)))
    least_batch = 1 << 24
    # The root trains on all rows; whoever solves for it has them all in its scratch.
    one_thread = core.worker_bytes(X.shape[0], entries, X.shape[1], width, dual)
    needed = fixed + max(per_feature * features, one_thread) + 3 * least_batch
    if total < needed:
        raise ValueError(
            f"memory_limit={limit!r} is too small: {in_use / 1e9:.2f} GB are in use now, and "
            f"training needs {needed / 1e9:.2f} GB at least"
        )
    batch = min(_BATCH, max(least_batch, (total - fixed) // 6))
    return MemoryPlan(batch, features, max(one_thread, (total - fixed) // 2 - batch))


def _batch_of_many() -> int:
    """For a machine with several NUMA nodes, each of which gets its copy of what is gathered."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return _BATCH
    return max(_BATCH, free // 8)
