"""Which setting should ``lt.DECLARE()`` have? Every combination, on held-out training rows.

    python benchmarks/coded/defaults.py [--data Bibtex Delicious CiteULike-t TIB-SID-en]
                [--estimators linear network] [--device cpu] [--n-jobs 2] [--json FILE]

For each data set, trains ``lt.DECLARE`` on four fifths of the training rows with every estimator,
compression and kind of targets, all else at its default, answers the other fifth through every
recovery, and prints P@1, P@3, P@5 and macro-F1@5 in percent with the seconds of training; then the
means over the data sets, best first by the mean of P@1, P@3 and P@5. No test row is looked at.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rows import NAMES, held_out, measured

import longtail as lt
from longtail.codes.estimators import code_estimator

RECOVERIES = ("inner", "cosine", "labels")


def cells(name: str, args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    rows, found = held_out(name), {}
    for estimator, compression, targets in product(
        args.estimators, ("svd", "neighbors"), ("codes", "unit")
    ):
        regressor = code_estimator(estimator)
        if estimator == "network":
            regressor.set_params(device=args.device)
        model = lt.DECLARE(
            estimator=regressor, compression=compression, targets=targets, n_jobs=args.n_jobs
        )
        began = time.perf_counter()
        model.fit(rows.X, rows.Y)
        seconds = time.perf_counter() - began
        for recovery in RECOVERIES:
            model.set_params(recovery=recovery)
            values = measured(rows, model.predict_topk(rows.X_test, k=5))
            key = f"{estimator}, {compression}, {targets}, {recovery}"
            found[key] = {"P": values["P"], "macro": values["macro"], "seconds": seconds}
            P = " / ".join(f"{p:.2f}" for p in values["P"])
            print(f"| {name} | {key} | {P} | {values['macro']:.1f} | {seconds:.1f} |", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(NAMES))
    parser.add_argument("--estimators", nargs="+", default=["linear", "network"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    print(f"{platform.machine()}, {lt.native_info()}, seed 0: {' '.join(sys.argv)}\n")
    print("| data | setting | P@1 / P@3 / P@5 | macro F1 | s |\n|---|---|---|---:|---:|")
    found = {name: cells(name, args) for name in args.data}
    means = {
        key: np.mean([found[name][key]["P"] for name in found], axis=0)
        for key in found[args.data[0]]
    }
    print("\n| setting | mean P@1 | P@3 | P@5 | all three |\n|---|---:|---:|---:|---:|")
    for key, P in sorted(means.items(), key=lambda item: -item[1].mean()):
        print(f"| {key} | {' | '.join(f'{p:.2f}' for p in P)} | {P.mean():.2f} |")
    if args.json:
        args.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
