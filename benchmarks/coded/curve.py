"""Accuracy against resources for one label per row: MACH over buckets and repetitions.

    python benchmarks/coded/curve.py [--data TIB-SID-en] [--rows 20000] [--estimator linear]
                                     [--plot docs/_static/coded-curve.svg]

Makes one class of each row, the most frequent of its labels, and trains MACH for every combination
of buckets and repetitions; repetitions are trained once and the first R of them used. Reports
accuracy against the share of one-vs-all's outputs, like the figure of the MACH poster.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import longtail as lt

BUCKETS = (64, 256, 1024)
REPETITIONS = (1, 2, 4, 8, 16)


def one_label_each(Y: Any, counts: np.ndarray) -> np.ndarray:
    """The label of each row that occurs most often, -1 for none."""
    out = np.full(Y.shape[0], -1)
    for i in range(Y.shape[0]):
        labels = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        if len(labels):
            out[i] = labels[np.argmax(counts[labels])]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="TIB-SID-en")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--estimator", default="linear")
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    print(f"{platform.machine()}, {lt.native_info()}")
    print("command:", *sys.argv, "seed: 0")
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / args.data)
    X, X_test = data.train.X, data.test.X
    if X is None:
        vectoriser = lt.Tfidf()
        X, X_test = (
            vectoriser.fit_transform(data.train.texts),
            vectoriser.transform(data.test.texts),
        )
    counts = np.bincount(data.train.Y.indices, minlength=data.train.Y.shape[1])
    train, test = one_label_each(data.train.Y, counts), one_label_each(data.test.Y, counts)
    kept = np.flatnonzero(train >= 0)[: args.rows]
    classes, y = np.unique(train[kept], return_inverse=True)
    seen = np.flatnonzero(np.isin(test, classes))
    y_test = np.searchsorted(classes, test[seen])
    print(f"{len(kept):,} rows, {len(classes):,} classes, {len(seen):,} test rows\n")

    def accuracy(model: Any) -> float:
        return float((model.predict_topk(X_test[seen], k=1).indices[:, 0] == y_test).mean())

    began = time.perf_counter()
    whole = accuracy(lt.OneVsAll().fit(X[kept], y))
    print(f"one-vs-all: {100 * whole:.2f} % in {time.perf_counter() - began:.0f} s\n")
    print("| buckets | " + " | ".join(f"R = {R}" for R in REPETITIONS) + " |")
    print("|---:|" + "---:|" * len(REPETITIONS))
    curves: dict[int, list[tuple[float, float]]] = {}
    for B in BUCKETS:
        model = lt.MACH(n_buckets=B, n_repetitions=max(REPETITIONS), estimator=args.estimator)
        parts = [model.fit(X[kept], y, repetitions=[0])]
        for r in range(1, max(REPETITIONS)):
            part = lt.MACH(**model.get_params(deep=False))
            parts.append(part.fit(X[kept], y, repetitions=[r]))
        found = [accuracy(lt.MACH.merge(parts[:R])) for R in REPETITIONS]
        curves[B] = [
            (R * B / len(classes), value) for R, value in zip(REPETITIONS, found, strict=True)
        ]
        cells = " | ".join(f"{100 * value:.2f} ({share:.0%})" for share, value in curves[B])
        print(f"| {B} | {cells} |", flush=True)
    print("\nAccuracy in %, and in parentheses R B as a share of one-vs-all's outputs.")
    if args.plot:
        draw(curves, whole, args.plot)


def draw(curves: dict[int, list[tuple[float, float]]], whole: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5, 3.4))
    for B, points in curves.items():
        axis.plot(*np.array(points).T * [[1], [100]], marker="o", ms=3, label=f"B = {B}")
    axis.axhline(100 * whole, color="gray", lw=1, ls="--", label="one-vs-all")
    axis.set(xscale="log", xlabel="outputs, as a share of the classes", ylabel="accuracy, %")
    axis.legend(frameon=False)
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
