"""Accuracy against resources for one label per row: MACH over buckets and repetitions.

    python benchmarks/coded/curve.py [--data TIB-SID-en] [--rows 20000] [--estimator network]
                        [--device cuda] [--at-once 8] [--plot docs/_static/coded-curve.svg]

Makes one class of each row, the most frequent of its labels, and trains MACH for every combination
of buckets and repetitions; repetitions are trained once and the first R of them used. Reports
accuracy against the share of outputs, like the figure of the MACH poster, next to the same
estimator with one output per class. Networks have the settings that ``tune.py`` chose for either.
What was found is kept in ``results/coded/curve.json``; ``--draw-only`` draws it again.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from joblib import parallel_config
from rows import load
from tables import setting_of

import longtail as lt

RESULT = Path(__file__).resolve().parents[1] / "results" / "coded" / "curve.json"
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
    parser.add_argument("--estimator", default="network")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--draw-only", action="store_true")
    args = parser.parse_args()
    if not args.draw_only:
        measure(args)
    if args.plot:
        draw(**json.loads(RESULT.read_text()), path=args.plot)


def measure(args: argparse.Namespace) -> None:
    print(f"{platform.machine()}, {lt.native_info()}")
    print("command:", *sys.argv, "seed: 0")
    data = load(args.data)
    X, X_test = data.X, data.X_test
    counts = np.bincount(data.Y.indices, minlength=data.Y.shape[1])
    train, test = one_label_each(data.Y, counts), one_label_each(data.Y_test, counts)
    kept = np.flatnonzero(train >= 0)[: args.rows]
    classes, y = np.unique(train[kept], return_inverse=True)
    seen = np.flatnonzero(np.isin(test, classes))
    y_test = np.searchsorted(classes, test[seen])
    print(f"{len(kept):,} rows, {len(classes):,} classes, {len(seen):,} test rows\n")

    def accuracy(model: Any) -> float:
        return float((model.predict_topk(X_test[seen], k=1).indices[:, 0] == y_test).mean())

    def estimator(kind: str) -> Any:
        if args.estimator == "linear":
            return lt.OneVsAll()
        setting = {**setting_of(args.data, kind), "loss": "softmax", "validation": 0.0}
        return lt.Network(**setting, device=args.device)

    began = time.perf_counter()
    whole = accuracy(estimator("network").fit(X[kept], y))
    print(f"one output per class: {100 * whole:.2f} % in {time.perf_counter() - began:.0f} s\n")
    print("| buckets | " + " | ".join(f"R = {R}" for R in REPETITIONS) + " |")
    print("|---:|" + "---:|" * len(REPETITIONS))
    curves: dict[int, list[tuple[float, float]]] = {}
    for B in BUCKETS:
        model = lt.MACH(n_buckets=B, n_repetitions=max(REPETITIONS), estimator=estimator("mach"))
        with parallel_config("loky", n_jobs=args.at_once):
            model.fit(X[kept], y)
        found = []
        for R in REPETITIONS:
            few = lt.MACH.merge([model])
            few.repetitions_ = {r: model.repetitions_[r] for r in range(R)}
            found.append(accuracy(few))
        curves[B] = [
            (R * B / len(classes), value) for R, value in zip(REPETITIONS, found, strict=True)
        ]
        cells = " | ".join(f"{100 * value:.2f} ({share:.0%})" for share, value in curves[B])
        print(f"| {B} | {cells} |", flush=True)
    print("\nAccuracy in %, and in parentheses R B as a share of the classes.")
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"curves": curves, "whole": whole}))


def draw(curves: dict[str, list[tuple[float, float]]], whole: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axis = plt.subplots(figsize=(5, 3.4))
    for B, points in curves.items():
        axis.plot(*np.array(points).T * [[1], [100]], marker="o", ms=3, label=f"B = {B}")
    axis.axhline(100 * whole, color="gray", lw=1, ls="--", label="one output per class")
    axis.set(xscale="log", xlabel="outputs, as a share of the classes", ylabel="accuracy, %")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axis.xaxis.set_major_formatter("{x:.0%}")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.legend(frameon=False)
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
