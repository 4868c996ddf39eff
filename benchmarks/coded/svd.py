"""How long does the truncated SVD of a large label matrix take?

    python benchmarks/coded/svd.py [--rows 196606] [--labels 205443] [--per-row 75]
                                   [--components 50] [--n-jobs 2]

Random labels with power-law frequencies at the size of Delicious-200K: what is measured is time and
memory. Also prints ``|Y v - s u| / s`` of the first and the last component kept, which is zero for
exact singular triples.
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
from longtail.codes.truncated_svd import truncated_svd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=196_606)
    parser.add_argument("--labels", type=int, default=205_443)
    parser.add_argument("--per-row", type=int, default=75)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--n-jobs", type=int, default=2)
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
    U, s, V = truncated_svd(Y, args.components, n_threads=args.n_jobs)
    print(
        f"{args.rows:,} x {args.labels:,}, {Y.nnz:,} entries, c = {args.components}: "
        f"{time.perf_counter() - wall:.0f} s wall, {time.process_time() - cpu:.0f} s CPU"
    )
    gaps = np.linalg.norm(Y @ V[:, [0, -1]] - U[:, [0, -1]] * s[[0, -1]], axis=0) / s[[0, -1]]
    print(f"residual of the first component {gaps[0]:.1e}, of the last {gaps[1]:.1e}")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")


if __name__ == "__main__":
    main()
