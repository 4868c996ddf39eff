"""XRLinear at extreme size under a memory limit: time, peak memory, model size, single queries.

    python benchmarks/linear/scale.py --like Amazon-670K --memory-limit 8GB
    python benchmarks/linear/scale.py --like Amazon-3M --rows 429475 --test-rows 20000

Data of the shape of a public benchmark are made (``make_longtail``) and saved first; training and
search run in a process of their own, whose peak memory is reported twice: what it allocated, which
the limit is about, and all pages that were resident at some time, with those of mapped files (data
and model), which the system takes back when it needs them.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail.metrics import precision_at_k

PARTS = ("train_X", "train_Y", "test_X", "test_Y")


class Allocated:
    """The most memory without mapped files that this process occupied inside the block."""

    peak = 0

    def __enter__(self) -> Allocated:
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._done.wait(0.02):
            status = Path("/proc/self/status").read_text()
            (line,) = (line for line in status.splitlines() if line.startswith("RssAnon"))
            self.peak = max(self.peak, int(line.split()[1]) * 1024)


def write(folder: Path, like: str, scale: float, rows: int | None, test_rows: int | None) -> None:
    data = lt.data.make_longtail(rows, like=like, scale=scale, n_test=test_rows, random_state=0)
    for name in PARTS:
        split, which = name.split("_")
        matrix = getattr(getattr(data, split), which)
        np.save(folder / f"{name}_shape.npy", matrix.shape)
        for part in ("indptr", "indices", "data"):
            np.save(folder / f"{name}_{part}.npy", getattr(matrix, part))


def read(folder: Path, name: str) -> sp.csr_matrix:
    arrays = [
        np.load(folder / f"{name}_{a}.npy", mmap_mode="r") for a in ("data", "indices", "indptr")
    ]
    shape = tuple(int(size) for size in np.load(folder / f"{name}_shape.npy"))
    out: Any = sp.csr_matrix(shape, dtype=np.float32)
    out.data, out.indices, out.indptr = arrays
    return out


def measure(folder: Path, limit: str | None, threads: int) -> None:
    X, Y, X_test, Y_test = (read(folder, name) for name in PARTS)
    print(
        f"X {X.shape}, {X.nnz / X.shape[0]:.0f} a row; Y {Y.shape}, {Y.nnz / Y.shape[0]:.2f} a row"
    )
    model = lt.XRLinear(memory_limit=limit, n_jobs=threads)
    wall, cpu = time.perf_counter(), time.process_time()
    with Allocated() as allocated:
        model.fit(X, Y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    levels = model.tree_.level_sizes_
    print(
        f"training: {wall:.0f} s, {cpu:.0f} CPU s, peak {allocated.peak / 1e9:.2f} GB allocated, "
        f"{peak:.2f} GB resident; levels {levels}",
        flush=True,
    )
    model.save(folder / "model", overwrite=True)
    begin = time.perf_counter()
    model = lt.load(folder / "model")
    loading = 1e3 * (time.perf_counter() - begin)
    print(f"model: {model.nbytes / 1e6:.0f} MB, loaded in {loading:.0f} ms")
    few = min(20_000, X_test.shape[0])
    begin = time.perf_counter()
    top = model.predict_topk(X_test[:few])
    each = (time.perf_counter() - begin) / few
    quality = "/".join(f"{100 * precision_at_k(Y_test[:few], top, k=k):.2f}" for k in (1, 3, 5))
    times = []
    for i in range(500):
        row = X_test[i]
        begin = time.perf_counter()
        model.predict_topk(row)
        times.append(time.perf_counter() - begin)
    p50, p99 = np.percentile(times, (50, 99))
    single = f"single p50 {1e3 * p50:.2f} ms, p99 {1e3 * p99:.2f} ms"
    print(f"search: {1e6 * each:.0f} us/query in a batch, {single}")
    print(f"P@1/3/5 {quality} on {few} test rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--like", default="Amazon-670K")
    parser.add_argument("--scale", type=float, default=1.0, help="of rows, features and labels")
    parser.add_argument("--rows", type=int, help="instead of those of the data set, scaled")
    parser.add_argument("--test-rows", type=int, help="likewise")
    parser.add_argument("--memory-limit", default="8GB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="keep the data here")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.folder, args.memory_limit, args.threads)
        return
    print(f"$ python {' '.join(sys.argv)}")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "test_Y_data.npy").exists():
            begin = time.perf_counter()
            write(folder, args.like, args.scale, args.rows, args.test_rows)
            print(f"data made in {time.perf_counter() - begin:.0f} s", flush=True)
        command = [sys.executable, __file__, "--measure", "--folder", str(folder)]
        options = ["--memory-limit", args.memory_limit, "--threads", str(args.threads)]
        subprocess.run([*command, *options], check=True)


if __name__ == "__main__":
    main()
