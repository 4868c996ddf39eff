"""How fast do bucket scores become labels, against a straightforward NumPy decoder?

    python benchmarks/coded/decode.py [--labels 3000000] [--buckets 10000] [--repetitions 16]
                                      [--queries 256] [--n-jobs 2]

Bucket scores are logits of random queries in two regimes: "peaked", where five labels of each query
stand out as they do in a trained model, and "flat", where nothing does and pruning finds no hold:
the worst case. NumPy gathers R values per label, averages them, and takes the top five with
argpartition, one query at a time; it is timed on a few queries. Answers are compared. NumPy runs on
one thread; on a busy machine the ratio of CPU seconds is the one to trust, and on n idle threads
the decoder is n times as fast as it says.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from typing import Any

import numpy as np

import longtail as lt
from longtail.codes import HashCode


def numpy_decode(table: np.ndarray, logits: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    values = 1 / (1 + np.exp(-logits))
    total = np.zeros(len(table), np.float32)
    for r in range(table.shape[1]):
        total += values[r][table[:, r]]
    total /= table.shape[1]
    best = np.argpartition(-total, k)[:k]
    best = best[np.lexsort((best, -total[best]))]
    return best, total[best]


def bucket_logits(code: HashCode, n: int, peaked: bool, rng: np.random.Generator) -> np.ndarray:
    R, B = code.n_repetitions_, code.n_buckets_
    logits = rng.normal(-6 if peaked else -2, 1, (n, R, B)).astype(np.float32)
    if peaked:
        labels = rng.integers(0, code.n_labels_, (n, 5))
        for r in range(R):
            rise = rng.normal(6, 2, labels.shape).astype(np.float32)
            np.maximum.at(logits[:, r], (np.arange(n)[:, None], code.table_[labels, r]), rise - 4)
    return logits


def timed(work: Any) -> tuple[float, float, Any]:
    """Wall seconds, CPU seconds, result."""
    began, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - began, time.process_time() - cpu, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=3_000_000)
    parser.add_argument("--buckets", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=16)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--n-jobs", type=int, default=2)
    args = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, {lt.native_info()}, numpy {np.__version__}"
    )
    print("command:", *sys.argv, "seed: 0")
    code = HashCode(
        n_buckets=args.buckets,
        n_repetitions=args.repetitions,
        link="sigmoid",
        n_jobs=args.n_jobs,
    )
    seconds, _, _ = timed(lambda: code.fit(args.labels))
    print(
        f"hashing {args.labels:,} labels x {args.repetitions}: {seconds:.2f} s, ties {code.n_ties_}"
    )
    seconds, _, _ = timed(code._decoder)
    print(f"inverse tables: {seconds:.2f} s")
    rng = np.random.default_rng(0)
    print(
        "\n| scores | decoder | wall ms per query | against NumPy | CPU ms | ratio | same answers |"
    )
    print("|---|---|---:|---:|---:|---:|---|")
    few = min(4, args.queries)
    for peaked in (True, False):
        name = "peaked" if peaked else "flat"
        logits = bucket_logits(code, args.queries, peaked, rng)
        wall, cpu, expected = timed(
            lambda logits=logits: [numpy_decode(code.table_, logits[q], 5) for q in range(few)]
        )
        base, base_cpu = wall / few, cpu / few
        print(f"| {name} | NumPy | {1e3 * base:.1f} | 1 | {1e3 * base_cpu:.1f} | 1 | |")
        for label, options in (
            ("exact", {}),
            ("exact, every label", {"prune": False}),
            ("candidates (T = 50)", {}),
        ):
            code.set_params(candidates=50 if label.startswith("cand") else None)
            wall, cpu, top = timed(
                lambda logits=logits, options=options: code.decode(logits, 5, **options)
            )
            each, each_cpu = wall / args.queries, cpu / args.queries
            agree = np.mean([(top.indices[q] == expected[q][0]).mean() for q in range(few)])
            print(
                f"| {name} | {label} | {1e3 * each:.2f} | {base / each:.0f}x | "
                f"{1e3 * each_cpu:.2f} | {base_cpu / each_cpu:.0f}x | {agree:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
