"""What does a label score that comes to a trained MACH model later?

    python benchmarks/coded/added.py [--data CiteULike-t] [--new 0.1] [--estimator network]
                                     [--rows 20000] [--device cpu] [--epochs 10] [--seeds 0 1 2]

A tenth of the labels with at least five training rows is taken away, a model trained without them,
and they are added: by hash alone, to the buckets that their examples light up, and (networks) after
one epoch of fine-tuning on all rows; against a model that knew them from the start. Measured are
recall at 5 of the new labels among all labels, P@1 on the test rows that have a new label, and P@1
over all test rows. Settings of the network are those that ``tune.py`` chose for MACH.
"""

from __future__ import annotations

import argparse
import platform
import sys
from typing import Any

import numpy as np
from rows import load
from tables import setting_of

import longtail as lt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="CiteULike-t")
    parser.add_argument("--new", type=float, default=0.1)
    parser.add_argument("--estimator", default="network")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repetitions", type=int, default=16)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--n-jobs", type=int, default=2)
    args = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {lt.native_info()}")
    print("command:", *sys.argv)
    found: dict[str, list[list[float]]] = {}
    for seed in args.seeds:
        for name, values in one_seed(args, seed):
            found.setdefault(name, []).append(values)
            print(seed, name, np.round(values, 2), flush=True)
    print("\n| new labels | their recall@5 | P@1 of rows with one | P@1 of all rows |")
    print("|---|---:|---:|---:|")
    for name, rows in found.items():
        print(f"| {name} | " + " | ".join(f"{v:.2f}" for v in np.mean(rows, axis=0)) + " |")


def one_seed(args: argparse.Namespace, seed: int) -> Any:
    rows = load(args.data)
    part = slice(args.rows)
    X, Y = rows.X[part], rows.Y[part]
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    known = np.flatnonzero(counts > 0)
    often = known[counts[known] >= 5]
    rng = np.random.default_rng([seed, 21])
    new = np.sort(rng.permutation(often)[: int(args.new * len(often))])
    old = np.setdiff1d(known, new)
    order = np.concatenate([old, new])
    Y, Y_test = Y[:, order].tocsr(), rows.Y_test[:, order].tocsr()
    before = Y[:, : len(old)].tocsr()
    fresh = Y[:, len(old) :].tocsr()

    def model() -> lt.MACH:
        estimator: Any = lt.OneVsAll() if args.estimator == "linear" else network(args)
        B, R = max(64, len(order) // (4 * args.repetitions)), args.repetitions
        return lt.MACH(
            n_buckets=B, n_repetitions=R, estimator=estimator, random_state=seed, n_jobs=args.n_jobs
        )

    trained = model().fit(X, before)

    def again() -> lt.MACH:
        return lt.MACH.merge([trained])

    def quality(m: lt.MACH) -> list[float]:
        top = m.predict_topk(rows.X_test, k=5)
        hits = top.to_csr(binary=True).multiply(Y_test).tocsc()[:, len(old) :].sum()
        mine = np.flatnonzero(np.diff(Y_test[:, len(old) :].tocsr().indptr))
        at_1 = np.array([Y_test[i, top.indices[i, 0]] for i in range(Y_test.shape[0])])
        return [
            100 * float(hits) / float(Y_test[:, len(old) :].sum()),
            100 * float(at_1[mine].mean()),
            100 * float(at_1.mean()),
        ]

    yield "hashes only", quality(again().add_labels(len(new)))
    placed = again().add_labels(X, fresh, Y_old=before)
    yield "buckets of labels they resemble", quality(placed)
    if args.estimator == "network":
        yield "the same, after one epoch of fine-tuning", quality(placed.fine_tune(X, Y))
        yield "hashes only, fine-tuned", quality(again().add_labels(len(new)).fine_tune(X, Y))
    yield "known from the start", quality(model().fit(X, Y))


def network(args: argparse.Namespace) -> lt.Network:
    setting = setting_of(args.data, "mach")
    if args.epochs is not None:
        setting["epochs"] = args.epochs
    return lt.Network(**setting, validation=0.0, device=args.device)


if __name__ == "__main__":
    main()
