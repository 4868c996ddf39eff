"""Time and memory of Gandalf's targets over very many labels, on drawn label matrices.

    python benchmarks/gandalf_scale.py --labels 1300000 --rows 2000000 --per-row 5

Prints, for each graph, seconds, entries of the result, and the most memory of a process of its own
beyond the label matrix, beside the size of that matrix and of the result.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import resource
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt


def drawn_labels(n: int, n_labels: int, per_row: int, seed: int = 0) -> sp.csr_matrix:
    """A few labels are frequent, most are rare; those of a row are near each other by rank, so that
    labels go together.
    """
    rng = np.random.default_rng(seed)
    first = np.exp(rng.random(n) ** 0.7 * np.log(n_labels)).astype(np.int64) - 1
    near = rng.geometric(0.02, (n, per_row)) - 1
    labels = np.minimum(first[:, None] + near, n_labels - 1)
    rows = np.repeat(np.arange(n), per_row)
    Y = sp.csr_matrix((np.ones(rows.size, np.float32), (rows, labels.ravel())), (n, n_labels))
    Y.data[:] = 1
    return Y


def peak() -> float:
    """The most memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(pipe: Any, Y: sp.csr_matrix, graph: str) -> None:
    X = sp.eye(Y.shape[1], format="csr", dtype=np.float32)
    before = peak()
    began = time.perf_counter()
    _, targets = lt.augment.gandalf(Y, X, graph=graph)
    seconds = time.perf_counter() - began
    size = (targets.nnz * 8 + len(targets.indptr) * 8 + X.shape[0] * 16) / 2**20
    pipe.send((graph, seconds, targets.nnz, peak() - before, size))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=1_300_000)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--per-row", type=int, default=5)
    parser.add_argument("graphs", nargs="*", default=["self", "co-occurrence", "symmetric"])
    options = parser.parse_args()
    print(f"{platform.platform()}, {lt.native_info()}, {' '.join(sys.argv)}", flush=True)
    Y = drawn_labels(options.rows, options.labels, options.per_row)
    bytes_of_Y = (Y.nnz * 8 + Y.shape[0] * 8) / 2**20
    work = int((np.diff(Y.indptr).astype(np.int64) ** 2).sum())
    print(f"Y {Y.shape[0]:,} x {Y.shape[1]:,}: {Y.nnz:,} entries, {bytes_of_Y:,.0f} MiB")
    print(f"sum of squared row lengths {work:,}")
    print("| graph | seconds | targets | rows and targets, MiB | memory beyond Y, MiB |")
    print("|---|---:|---:|---:|---:|")
    context = multiprocessing.get_context("fork")
    for graph in options.graphs:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=measure, args=(theirs, Y, graph))
        child.start()
        name, seconds, targets, memory, size = ours.recv()
        child.join()
        print(f"| {name} | {seconds:.1f} | {targets:,} | {size:,.0f} | {memory:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
