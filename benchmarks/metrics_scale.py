"""All metrics at k = 1, 3, 5 on synthetic predictions of extreme size: seconds and peak memory.

    python benchmarks/metrics_scale.py --rows 1000000 --labels 3000000 --labels-per-row 5

Labels follow a power law; about half of the predictions are right. Prints the machine, the command,
the size of the input in memory, and for each step its time and the growth of the process.
``--bootstrap B`` adds B resamples of the row-wise metrics.
"""

from __future__ import annotations

import argparse
import platform
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

from longtail import TopK, metrics, native_info

KS = (1, 3, 5)
ROW_WISE = ["precision", "recall", "f1", "dcg", "ndcg", "hit_rate", "hamming_loss"]
ROW_WISE += ["micro_precision", "micro_recall", "micro_f1"]
PROPENSITY_SCORED = ["ps_precision", "ps_recall", "ps_dcg", "ps_ndcg"]
MEASURES = ["precision", "recall", "f1", "balanced_accuracy", "g_mean", "fowlkes_mallows"]
LABEL_WISE = [f"macro_{measure}" for measure in MEASURES] + ["coverage"]
LABEL_WISE += ["micro_balanced_accuracy", "micro_g_mean", "micro_fowlkes_mallows"]


def random_labels(rng: np.random.Generator, n: int, n_labels: int, per_row: int) -> sp.csr_matrix:
    """Binary CSR matrix with about ``per_row`` power-law labels in each row."""
    columns = (n_labels * rng.random((n, per_row), dtype=np.float32) ** 3).astype(np.int32)
    columns = np.sort(np.minimum(columns, n_labels - 1), axis=1)
    first = np.ones(columns.shape, dtype=bool)
    first[:, 1:] = columns[:, 1:] != columns[:, :-1]
    indptr = np.concatenate([[0], np.cumsum(first.sum(axis=1), dtype=np.int64)])
    indices = columns[first]
    data = np.ones(len(indices), dtype=np.float32)
    return sp.csr_matrix((data, indices, indptr), shape=(n, n_labels))


def megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


@contextmanager
def step(name: str) -> Iterator[None]:
    before, start, start_cpu = megabytes(), time.perf_counter(), time.process_time()
    yield
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    grown = megabytes() - before
    print(f"{name:44} {seconds:7.2f} s {cpu:7.2f} s CPU   peak memory +{grown:5.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=3_000_000)
    parser.add_argument("--labels-per-row", type=int, default=5)
    parser.add_argument("--bootstrap", type=int, default=0, metavar="B")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"{platform.platform()}, {native_info()}, numpy {np.__version__}")
    print("command:", " ".join(["python", *sys.argv]), "seed:", args.seed)

    rng = np.random.default_rng(args.seed)
    Y = random_labels(rng, args.rows, args.labels, args.labels_per_row)
    scores = Y + random_labels(rng, args.rows, args.labels, 5)
    scores.data = rng.random(scores.nnz, dtype=np.float32)
    top = TopK.from_scores(scores, max(KS))
    del scores
    p = SimpleNamespace(inverse_=1 + 20 * rng.random(args.labels))
    size = Y.data.nbytes + Y.indices.nbytes + Y.indptr.nbytes
    size += top.indices.nbytes + top.scores.nbytes + p.inverse_.nbytes
    print(f"{args.rows} rows, {args.labels} labels, {Y.nnz} positives, input {size / 2**20:.0f} MB")

    start, start_cpu = time.perf_counter(), time.process_time()
    values: dict[str, float] = {}
    with step("match"):
        m = metrics.match(Y, top)
    with step(f"{len(ROW_WISE)} row-wise metrics x {len(KS)}"):
        for name in ROW_WISE:
            for k in KS:
                values[f"{name}@{k}"] = getattr(metrics, f"{name}_at_k")(Y, m, k)
    with step(f"{len(PROPENSITY_SCORED)} propensity-scored metrics x {len(KS)} x 2"):
        for name in PROPENSITY_SCORED:
            for k in KS:
                for normalize in (True, False):
                    metric = getattr(metrics, f"{name}_at_k")
                    values[f"{name}@{k}"] = metric(Y, m, p, k, normalize=normalize)
    with step(f"{len(LABEL_WISE)} label-wise metrics x {len(KS)}"):
        for name in LABEL_WISE:
            for k in KS:
                values[f"{name}@{k}"] = getattr(metrics, f"{name}_at_k")(Y, m, k)
    with step("contribution by 5 bins"):
        metrics.contribution_by_bin(Y, m, metrics.frequency_bins(Y), k=5, p=p)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    print(f"{'all metrics':44} {seconds:7.2f} s {cpu:7.2f} s CPU")
    print({name: round(values[name], 4) for name in ("precision@1", "ndcg@5", "macro_f1@5")})

    if args.bootstrap:
        calls = {
            f"{name}@{k}": partial(getattr(metrics, f"{name}_at_k"), k=k)
            for name in ROW_WISE
            for k in KS
        }
        with step(f"bootstrap of {len(calls)} metrics, {args.bootstrap} resamples"):
            found = metrics.bootstrap_intervals(calls, Y, m, n_resamples=args.bootstrap)
        print("P@1", found["precision@1"])


if __name__ == "__main__":
    main()
