"""Single queries with and without a pause before each: weights mapped from the file, or in memory.

    LONGTAIL_DATA=FOLDER python benchmarks/linear/cold_queries.py TIB-SID-en [--rest 0.02]

While a process rests, others fill the caches, and the weights have to come from memory again. Three
trees of the quality setting, one thread, the median and the 90th percentile of the CPU time of
``predict_topk`` on one row. "Mapped" is what ``lt.load`` does, with pages as the file system has
them; "in memory" (``mmap=False``) are arrays of NumPy, which asks for huge pages. How much of
either lies in huge pages is printed, where the system tells. The two take turns.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from thread_scaling import features

import longtail as lt


def huge_megabytes() -> float:
    """Memory of this process that lies in huge pages; NaN where the system does not tell."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return float("nan")
    kinds = ("AnonHugePages", "ShmemPmdMapped", "FilePmdMapped")
    return sum(int(line.split()[1]) for line in lines if line.startswith(kinds)) / 1024


def milliseconds(model: Any, rows: list[Any], rest: float) -> list[float]:
    taken = []
    for row in rows:
        time.sleep(rest)
        begin = time.process_time()
        model.predict_topk(row, k=5)
        taken.append(1e3 * (time.process_time() - begin))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--rest", type=float, default=0.02, help="seconds before a query")
    parser.add_argument("--queries", type=int, default=500, help="in each round")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print(f"$ python {' '.join(sys.argv)}")
    print(f"{platform.processor() or platform.machine()}, {lt.native_info()['isa']}, one thread\n")
    X, Y, X_test, _ = features(args.data)
    trees = [lt.XRLinear(threshold=0.03, random_state=seed, n_jobs=1) for seed in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        lt.Ensemble(models=trees).fit(X, Y).save(path)
        del trees, X, Y
        before, models, huge = huge_megabytes(), {}, {}
        for form, mapped in {"mapped": True, "in memory": False}.items():
            models[form] = lt.load(path, mmap=mapped)
            models[form].predict_topk(X_test)  # every page is there
            huge[form] = huge_megabytes() - before
            before += huge[form]
        rows = [X_test[i] for i in range(min(args.queries, X_test.shape[0]))]
        taken: dict[tuple[str, float], list[float]] = {}
        for _ in range(args.rounds):
            for rest in (0.0, args.rest):
                for form, model in models.items():
                    milliseconds(model, rows[:20], 0.0)
                    taken.setdefault((form, rest), []).extend(milliseconds(model, rows, rest))
        size = (path / "arrays.bin").stat().st_size / 1e6
    print(f"{args.data}, three trees, {size:.0f} MB\n")
    print("| weights | in huge pages, MB | rest, ms | p50, CPU ms | p90, CPU ms |")
    print("|---|---:|---:|---:|---:|")
    for (form, rest), times in taken.items():
        p50, p90 = np.percentile(times, (50, 90))
        print(f"| {form} | {huge[form]:.0f} | {1e3 * rest:.0f} | {p50:.2f} | {p90:.2f} |")


if __name__ == "__main__":
    main()
