"""Where the training time of XRLinear goes, and how far each phase is from its floor.

    LONGTAIL_DATA=FOLDER python benchmarks/linear/profile.py TIB-SID-en

One thread. The unit of training is the *line*: one non-zero of a row times the 64-byte line of
weights of 16 labels, one fused multiply-add with one load. A pass over a level has

    lines = sum over its nodes of (non-zeros of the node's rows) x (blocks of 16 children)

and cannot take less than one line per cycle: lines / frequency. Its time over this floor says how
many passes' worth of lines the solver spends, updates (a load and a store per line), waiting for
memory and everything else included.

The unit of search is the *entry*: a weight of a child for a feature that the query has. Each is
loaded, multiplied and added to its child's sum, one per cycle at best: that is its floor. Look-ups
of features, choosing the best children and waiting for memory come on top.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from thread_scaling import features

import longtail as lt
from longtail.features.unit_length import unit_rows
from longtail.linear import xr_linear
from longtail.linear.train.level import train_level
from longtail.linear.train.parts import TrainingLevel
from longtail.linear.xr_linear import default_tree


def gigahertz() -> float:
    """From /proc/cpuinfo; 2.5 where it does not say."""
    try:
        with open("/proc/cpuinfo") as file:
            return max(float(line.split(":")[1]) for line in file if "cpu MHz" in line) / 1e3
    except (OSError, ValueError):
        return 2.5


def lines(problem: Any, row_nnz: np.ndarray) -> int:
    parents = problem.parents
    before = np.concatenate([[0], np.cumsum(row_nnz[parents.indices], dtype=np.int64)])
    blocks = -(-np.diff(problem.child_ptr) // 16)
    return int((np.diff(before[parents.indptr]) * blocks).sum())


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "TIB-SID-en"
    X, Y, X_test, _ = features(name)
    speed = gigahertz() * 1e9
    print(f"$ python {' '.join(sys.argv)}")
    print(
        f"{platform.processor() or platform.machine()}, {speed / 1e9:.2f} GHz, one thread, {name}\n"
    )
    rows: list[tuple[str, float, float | None]] = []

    def timed(what: str, work: Any, floor: float | None = None) -> Any:
        begin = time.process_time()
        out = work()
        rows.append((what, time.process_time() - begin, floor))
        return out

    X = timed("rows to unit length", lambda: unit_rows(X, 1), 12 * X.nnz / 10e9)
    tree = default_tree(Y.shape[1])
    tree.set_params(n_jobs=1)
    timed("label tree", lambda: tree.fit(X, Y))
    levels: list[TrainingLevel] = []

    def record(X: Any, some: Sequence[TrainingLevel], *_: Any, **how: Any) -> list[Any]:
        levels.extend(some)
        return [train_level(X, at.problem, at.options, seed=at.seed, n_threads=1) for at in some]

    kept, xr_linear.train_levels = xr_linear.train_levels, record  # type: ignore[assignment]
    model = lt.XRLinear(n_jobs=1).fit(X, Y)
    xr_linear.train_levels = kept
    for t, level in enumerate(levels):
        problem = level.problem
        floor = lines(problem, np.diff(X.indptr)) / speed
        what = f"level {t + 1}, {problem.positives.shape[1]:,} nodes"
        again = partial(train_level, X, problem, level.options, seed=level.seed, n_threads=1)
        timed(what, again, floor)
    model.set_params(n_jobs=1).predict_topk(X_test[:10], k=5)
    searcher = model._searcher()
    before = searcher.entries_read()
    timed(f"search of {X_test.shape[0]:,} rows", lambda: model.predict_topk(X_test, k=5))
    what, seconds, _ = rows[-1]
    rows[-1] = what, seconds, (searcher.entries_read() - before) / speed
    print("| phase | CPU s | floor, s | time / floor |\n|---|---:|---:|---:|")
    for what, seconds, least in rows:
        bound = ("", "") if least is None else (f"{least:.3f}", f"{seconds / least:.0f}")
        print(f"| {what} | {seconds:.2f} | {bound[0]} | {bound[1]} |")


if __name__ == "__main__":
    main()
