"""How long does the truncated SVD of a large label matrix take, and the neighbour code?

    python benchmarks/coded/svd.py [--rows 196606] [--labels 205443] [--per-row 75]
                                   [--components 50] [--n-jobs 2] [--neighbors]

Random labels with power-law frequencies at the size of Delicious-200K: what is measured is time and
memory. Also prints ``|Y v - s u| / s`` of the first and the last component kept, which is zero for
exact singular triples. ``--neighbors`` fits ``NeighborCode`` instead, which starts from the SVD.
"""

from __future__ import annotations

import argparse
import platform
import resource
import sys
import time

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail.codes import NeighborCode
from longtail.codes.randomized_svd import truncated_svd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=196_606)
    parser.add_argument("--labels", type=int, default=205_443)
    parser.add_argument("--per-row", type=int, default=75)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--neighbors", action="store_true")
    args = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {lt.native_info()}")
    print("command:", *sys.argv, "seed: 0")
    rng = np.random.default_rng(0)
    columns = (args.labels * rng.random((args.rows, args.per_row)) ** 3).astype(np.int32)
    Y = sp.csr_matrix(
        (
            np.ones(columns.size, np.float32),
            columns.ravel(),
            np.arange(args.rows + 1, dtype=np.int64) * args.per_row,
        ),
        shape=(args.rows, args.labels),
    )
    Y.sum_duplicates()
    Y.data[:] = 1
    wall, cpu = time.perf_counter(), time.process_time()
    if args.neighbors:
        code = NeighborCode(n_components=args.components, n_jobs=args.n_jobs).fit(Y)
    else:
        U, s, V = truncated_svd(Y, args.components, n_threads=args.n_jobs)
    print(
        f"{args.rows:,} x {args.labels:,}, {Y.nnz:,} entries, c = {args.components}: "
        f"{time.perf_counter() - wall:.0f} s wall, {time.process_time() - cpu:.0f} s CPU"
    )
    if args.neighbors:
        print(f"objective {code.objective_[0]:.3g} at first, {code.objective_[-1]:.3g} at last")
    else:
        report_gaps(Y, U, s, V)
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")


def report_gaps(Y: sp.csr_matrix, U: np.ndarray, s: np.ndarray, V: np.ndarray) -> None:
    gaps = np.linalg.norm(Y @ V[:, [0, -1]] - U[:, [0, -1]] * s[[0, -1]], axis=0) / s[[0, -1]]
    print(f"residual of the first component {gaps[0]:.1e}, of the last {gaps[1]:.1e}")


if __name__ == "__main__":
    main()
