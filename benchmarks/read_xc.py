"""How fast is the text format read, against scikit-learn's reader of the same rows?

    python benchmarks/read_xc.py [--megabytes 200] [--n-jobs 2] [--rounds 3] [--seed 0]

Writes one synthetic file (power-law labels and features, TF-IDF-like values of six decimals) with
the header ``N D L``, and its twin without, which ``sklearn.datasets.load_svmlight_file`` wants.
Both readers take turns, results are compared entry by entry, and the file is in the page cache for
both. The floor is what no reader can avoid: copying the bytes out of the page cache and touching
fresh memory of the result's size, by one thread. Wall time counts; CPU time, summed over threads,
stands beside it because other work on the machine disturbs it less.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_svmlight_file

import longtail as lt
from machine import cpu_name

N_FEATURES, N_LABELS = 135_909, 670_091  # the widths of a large public benchmark
BYTES_PER_ROW = 1_050


def power_law(rng: np.random.Generator, lengths: np.ndarray, width: int, skew: float) -> Any:
    """Rows of distinct columns, small ones more often; a CSR matrix of ones."""
    columns = (width * rng.random(int(lengths.sum())) ** skew).astype(np.int64)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    keys = np.unique(rows * width + columns)
    indptr = np.searchsorted(keys, np.arange(len(lengths) + 1) * width)
    ones = np.ones(len(keys), np.float32)
    return sp.csr_matrix((ones, keys % width, indptr), (len(lengths), width))


def make_files(folder: Path, megabytes: int, seed: int) -> tuple[Path, Path]:
    """The file with a header, and its twin without."""
    rng = np.random.default_rng(seed)
    n = max(1, megabytes * 1_000_000 // BYTES_PER_ROW)
    Y = power_law(rng, 1 + rng.poisson(4.5, n), N_LABELS, 3)
    X = power_law(rng, 1 + rng.lognormal(4, 0.7, n).astype(np.int64), N_FEATURES, 2)
    X.data = np.round(rng.random(X.nnz) * rng.random(X.nnz), 6).astype(np.float32)
    with_header, without = folder / "rows.txt", folder / "rows.svm"
    lt.write_xc(with_header, X, Y)
    with open(with_header, "rb") as source, open(without, "wb") as target:
        source.readline()
        while block := source.read(1 << 24):
            target.write(block)
    return with_header, without


class Clock:
    """Wall and CPU seconds of repeated calls, by name."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}

    def time(self, name: str, function: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = function()
        self.cpu.setdefault(name, []).append(time.process_time() - cpu)
        self.wall.setdefault(name, []).append(time.perf_counter() - wall)
        return result


def touch(path: Path, n_bytes: int) -> None:
    """Reads the file into one buffer and writes as much fresh memory as the result takes."""
    buffer = np.empty(1 << 23, np.uint8)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(memoryview(buffer)):
            pass
    np.empty(n_bytes, np.uint8).fill(1)


def check_equal(ours: tuple[Any, Any], theirs: tuple[Any, Any]) -> None:
    (X, Y), (X2, labels) = ours, theirs
    if X.shape[0] != X2.shape[0] or X2.shape[1] > X.shape[1]:
        raise SystemExit(f"shapes differ: {X.shape} and {X2.shape}")
    same = all(
        np.array_equal(a, b)
        for a, b in ((X.indptr, X2.indptr), (X.indices, X2.indices), (X.data, X2.data))
    )
    flat = np.fromiter((label for row in labels for label in row), np.int64)
    lengths = np.fromiter(map(len, labels), np.int64)
    if not (
        same and np.array_equal(flat, Y.indices) and np.array_equal(lengths, np.diff(Y.indptr))
    ):
        raise SystemExit("the two readers disagree")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    arguments.add_argument("--megabytes", type=int, default=200)
    arguments.add_argument("--n-jobs", type=int, default=2)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=0)
    args = arguments.parse_args()

    print(f"machine   {cpu_name()}, {os.cpu_count()} cores, {platform.platform()}")
    print(f"versions  Python {platform.python_version()}, NumPy {np.__version__}, SciPy", end=" ")
    print(f"{scipy.__version__}, scikit-learn {sklearn.__version__}, longtail {lt.__version__}")
    print(f"command   python {' '.join(sys.argv)}   (seed {args.seed})")

    with tempfile.TemporaryDirectory() as folder:
        ours_path, theirs_path = make_files(Path(folder), args.megabytes, args.seed)
        size = ours_path.stat().st_size
        clock = Clock()
        for _ in range(args.rounds):
            X, Y = clock.time("longtail", lambda: lt.read_xc(ours_path, n_jobs=args.n_jobs))
            n_bytes = sum(a.nbytes for m in (X, Y) for a in (m.indptr, m.indices, m.data))
            clock.time("floor", lambda: touch(ours_path, n_bytes))  # noqa: B023
            theirs = clock.time(
                "scikit-learn",
                lambda: load_svmlight_file(
                    str(theirs_path), multilabel=True, zero_based=True, dtype=np.float32
                ),
            )
            check_equal((X, Y), theirs)
            print(f"round     load {os.getloadavg()[0]:.1f}", end="")
            print("".join(f", {name} {values[-1]:.3f} s" for name, values in clock.wall.items()))

    print(f"file      {size / 1e6:.0f} MB, {X.shape[0]} rows, {X.nnz} features, {Y.nnz} labels")
    best = {name: min(values) for name, values in clock.wall.items()}
    middle = {name: statistics.median(values) for name, values in clock.wall.items()}
    cpu = {name: min(values) for name, values in clock.cpu.items()}
    for name in best:
        print(
            f"{name:13s} best {best[name]:.3f} s, median {middle[name]:.3f} s, "
            f"CPU {cpu[name]:.3f} s, {size / best[name] / 1e6:.0f} MB/s"
        )
    print(
        f"ratio     scikit-learn / longtail with {args.n_jobs} threads: "
        f"{best['scikit-learn'] / best['longtail']:.1f} (best), "
        f"{middle['scikit-learn'] / middle['longtail']:.1f} (median), "
        f"{cpu['scikit-learn'] / cpu['longtail']:.1f} (CPU time)"
    )
    print(
        f"floor     longtail / floor: {best['longtail'] / best['floor']:.1f} (best), "
        f"{cpu['longtail'] / cpu['floor']:.1f} (CPU time)"
    )


if __name__ == "__main__":
    main()
