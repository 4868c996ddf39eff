"""Training and batch search of the linear models on 1 to 16 threads, and that the bits agree.

    python benchmarks/linear/thread_scaling.py TIB-SID-en --threads 1,2,4,8,16 [--copies]
    python benchmarks/linear/thread_scaling.py like:Amazon-670K --scale 0.2 [--one-vs-all]

``like:NAME`` makes data of that shape (``make_longtail``), ``--scale`` times as large.

Wall seconds are the best of ``--repeat`` runs; a speed-up is the ratio to one thread. With
``--copies``, as many processes as the most threads first train alike, one thread each, at the same
time: what these processors do together for work that has nothing to wait for.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import longtail as lt


def features(name: str, scale: float = 1.0) -> tuple[Any, Any, Any, Any]:
    """X, Y and the test rows: words with sublinear tf (text sets), or the features as given.

    A name that is no path is looked up in the folder ``LONGTAIL_DATA``.
    """
    if name.startswith("like:"):
        ds = lt.data.make_longtail(like=name.removeprefix("like:"), scale=scale, random_state=0)
        return ds.train.X, ds.train.Y, ds.test.X, ds.test.Y
    inside = Path(os.environ.get("LONGTAIL_DATA", "")) / name
    ds = lt.load_dataset(inside if inside.exists() else name)
    if ds.train.X is not None:
        return ds.train.X, ds.train.Y, ds.test.X, ds.test.Y
    words = lt.Tfidf()
    X = words.fit_transform(ds.train.texts)
    return X, ds.train.Y, words.transform(ds.test.texts), ds.test.Y


def best(repeat: int, work: Any) -> tuple[float, float, Any]:
    """Smallest wall time, its CPU time, and the result."""
    runs = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        out = work()
        runs.append((time.perf_counter() - wall, time.process_time() - cpu))
    return (*min(runs), out)


def as_good_as(n_copies: int, train: Any) -> float:
    """Return how many times the work of one process ``n_copies`` do in the same time."""

    def copy(barrier: Any, seconds: Any) -> None:
        train()  # memory is there, and caches are warm
        barrier.wait()
        begin = time.perf_counter()
        train()
        seconds.put(time.perf_counter() - begin)

    def mean_seconds(n: int) -> float:
        context = multiprocessing.get_context("fork")
        barrier, seconds = context.Barrier(n), context.Queue()
        processes = [context.Process(target=copy, args=(barrier, seconds)) for _ in range(n)]
        for process in processes:
            process.start()
        taken = [seconds.get() for _ in processes]
        for process in processes:
            process.join()
        return sum(taken) / n

    return n_copies * mean_seconds(1) / mean_seconds(n_copies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--one-vs-all", action="store_true")
    parser.add_argument("--copies", action="store_true")
    args = parser.parse_args()
    X, Y, X_test, _ = features(args.data, args.scale)
    print(f"$ python {' '.join(sys.argv)}")
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} cores, {lt.native_info()}")
    print(f"{args.data}: X {X.shape}, Y {Y.shape}, test rows {X_test.shape[0]}")
    batch = X_test[np.arange(max(100_000, X_test.shape[0])) % X_test.shape[0]]
    maker = lt.OneVsAll if args.one_vs_all else lt.XRLinear
    if args.copies:
        n = max(map(int, args.threads.split(",")))
        print(f"{n} copies at once, one thread each: as good as", end=" ", flush=True)
        print(f"{as_good_as(n, lambda: maker(n_jobs=1).fit(X, Y)):.1f}")
    reference: Any = None
    base_fit = base_search = 0.0
    print("threads  fit wall  fit cpu  speed-up   search us/query  speed-up  same bits")
    for threads in map(int, args.threads.split(",")):
        fit_wall, fit_cpu, model = best(
            args.repeat, lambda threads=threads: maker(n_jobs=threads).fit(X, Y)
        )
        search_wall, _, top = best(args.repeat, lambda model=model: model.predict_topk(batch))
        arrays = [array for layer in model.layers_ for array in layer.arrays.values()]
        if reference is None:
            reference, base_fit, base_search = (arrays, top), fit_wall, search_wall
        same = top == reference[1] and all(
            np.array_equal(a, b) for a, b in zip(arrays, reference[0], strict=True)
        )
        print(
            f"{threads:7d}  {fit_wall:8.2f}  {fit_cpu:7.2f}  {base_fit / fit_wall:7.2f}x"
            f"   {1e6 * search_wall / batch.shape[0]:14.2f}  {base_search / search_wall:7.2f}x"
            f"  {'yes' if same else 'NO'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
