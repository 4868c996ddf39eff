"""Ten million labels on a small machine: training step, decoding, memory.

    python benchmarks/coded/scale.py [--labels 10000000] [--buckets 20000] [--repetitions 16]
                                     [--rows 20000] [--features 200000] [--n-jobs 2]

Random rows of 50 features and 5 power-law labels: what is measured is time and memory, not quality.
Times are wall seconds and, in parentheses, CPU seconds of all threads, which a busy machine does
not stretch. Trains a few steps of one repetition (the others cost the same, one after another or
elsewhere), then decodes random queries over all repetitions.
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
from longtail.codes import HashCode


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Clock:
    """Wall and CPU seconds since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def __call__(self, n: int = 1, unit: float = 1e3) -> str:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return f"{unit * wall / n:.1f} ({unit * cpu / n:.1f})"


def random_rows(rng: np.random.Generator, n: int, width: int, per_row: int) -> sp.csr_matrix:
    columns = (width * rng.random((n, per_row)) ** 3).astype(np.int64)
    out = sp.csr_matrix(
        (np.ones(n * per_row, np.float32), columns.ravel(), np.arange(n + 1) * per_row),
        shape=(n, width),
    )
    out.sum_duplicates()
    out.data[:] = 1
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=10_000_000)
    parser.add_argument("--buckets", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=16)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=200_000)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--n-jobs", type=int, default=2)
    args = parser.parse_args()
    print(f"{platform.machine()}, {lt.native_info()}")
    print("command:", *sys.argv, "seed: 0")
    rng = np.random.default_rng(0)
    clock = Clock()
    code = HashCode(
        n_buckets=args.buckets, n_repetitions=args.repetitions, link="sigmoid", n_jobs=args.n_jobs
    ).fit(args.labels)
    assert code._decoder
    print(f"hashes and inverse tables: {clock(unit=1)} s")
    print(f"labels that tie with another: {code.n_ties_}; memory {peak():.1f} GiB")

    X = random_rows(rng, args.rows, args.features, 50)
    Y = random_rows(rng, args.rows, args.labels, 5)
    clock = Clock()
    targets = code.encode_repetition(Y, 0)
    print(f"encoding {args.rows:,} rows for one repetition: {clock(unit=1)} s")
    steps = -(-args.rows // args.batch_size)
    try:
        clocks: list[Clock] = []
        spent: list[str] = []

        def look(epoch: int, seconds: float, network: lt.Network) -> None:
            spent.extend(clock(steps) for clock in clocks)  # since the first epoch ended
            clocks.append(Clock())

        network = lt.Network(
            hidden=args.hidden,
            batch_size=args.batch_size,
            epochs=2,
            validation=0.0,
            n_jobs=args.n_jobs,
        ).fit(X, targets, after_epoch=look)
        print(f"training step of one repetition ({args.batch_size} rows): {spent[0]} ms")
        print(f"parameters per repetition: {network.n_parameters_ / 1e6:.1f} million")
    except lt.exceptions.MissingDependencyError as error:
        print(error)
    n = 128
    logits = rng.normal(-6, 1, (n, args.repetitions, args.buckets)).astype(np.float32)
    labels = rng.integers(0, args.labels, (n, 5))
    for r in range(args.repetitions):
        logits[np.arange(n)[:, None], r, code.table_[labels, r]] = rng.normal(2, 1, (n, 5))
    for name, options in (("exact", {}), ("exact, every label", {"prune": False})):
        clock = Clock()
        top = code.decode(logits, 5, **options)
        each = clock(n)
        found = np.mean([np.isin(labels[q], top.indices[q]).mean() for q in range(n)])
        print(f"decoding, {name}: {each} ms per query ({found:.0%} of planted labels found)")
    print(f"peak memory: {peak():.1f} GiB")


if __name__ == "__main__":
    main()
