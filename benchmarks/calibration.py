"""Do calibrated probabilities keep their word on test rows?

    python benchmarks/calibration.py [--data TIB-SID-en DebDeps-src] [--k 5] [--seed 0]

For each data set, ``XRLinear`` with its defaults on TF-IDF of the texts, calibrated in two ways: on
a tenth of the training rows that the model then does not train on ("held out"), and by
cross-fitting on all of them ("5 folds", the model trains on everything). Told for the test rows:
the expected calibration error (15 bins of equal mass over all pairs of a row and one of its first k
answers), overall and in five bins of labels by training frequency, head first; the log-loss; and,
for comparison, the error of the plain scores taken as if they were probabilities.

``--data``: folders, or names below LONGTAIL_DATA.
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
from longtail import metrics
from longtail.calibrate import log_loss


def rows_of(source: Path) -> tuple[Any, Any, Any, Any]:
    data = lt.load_dataset(source)
    if data.train.X is not None:
        return data.train.X, data.train.Y, data.test.X, data.test.Y
    vectoriser = lt.Tfidf()
    X = vectoriser.fit_transform(data.train.texts)
    return X, data.train.Y, vectoriser.transform(data.test.texts), data.test.Y


def tell(name: str, model: Any, train_Y: Any, X: Any, Y: Any, k: int, seconds: float) -> None:
    proba = model.predict_proba_topk(X, k=k)
    matches = metrics.match(Y, proba, k)
    answered = proba.indices >= 0
    loss = log_loss(proba.scores[answered], matches.gains[answered])
    bins = metrics.frequency_bins(train_Y)
    errors = [
        metrics.expected_calibration_error(Y, matches, k, labels=bins.bin_of_label == b)
        for b in range(len(bins))
    ]
    precision = metrics.precision_at_k(Y, matches, 1)
    error = metrics.expected_calibration_error(Y, matches, k)
    by_bin = " ".join(f"{e:.4f}" for e in errors)
    method = model.calibration_["method"]
    tried = ", ".join(f"{m} {v:.4f}" for m, v in model.calibration_["held_out_log_loss"].items())
    print(f"  {name:<10} ECE {error:.4f}   by frequency {by_bin}   log-loss {loss:.4f}")
    print(f"  {'':<10} {method}; P@1 {precision:.4f}; {seconds:.1f} s to calibrate")
    print(f"  {'':<10} held-out log-loss: {tried}")


def measure(source: Path, k: int, seed: int) -> None:
    X, Y, X_test, Y_test = rows_of(source)
    print(f"{source.name}: {X.shape[0]:,} rows, {Y.shape[1]:,} labels, {X_test.shape[0]:,} to test")
    everything = lt.XRLinear(random_state=seed).fit(X, Y)
    scores = everything.predict_topk(X_test, k=k)
    raw = metrics.expected_calibration_error(Y_test, scores, k)
    print(f"  scores as if they were probabilities: ECE {raw:.4f}")
    start = time.perf_counter()
    everything.calibrate(X, Y, k=k, folds=5, random_state=seed)
    tell("5 folds", everything, Y, X_test, Y_test, k, time.perf_counter() - start)
    # Drawn plainly: a split that keeps rare labels for training makes held-out rows too easy.
    order = np.random.default_rng(seed).permutation(X.shape[0])
    rest, most = np.sort(order[: X.shape[0] // 10]), np.sort(order[X.shape[0] // 10 :])
    part = lt.XRLinear(random_state=seed).fit(X[most], Y[most])
    start = time.perf_counter()
    part.calibrate(X[rest], Y[rest], k=k, random_state=seed)
    tell("held out", part, Y, X_test, Y_test, k, time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=["TIB-SID-en", "DebDeps-src"])
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    root = os.environ.get("LONGTAIL_DATA")
    sources = [Path(name) if Path(name).exists() else Path(root or "", name) for name in args.data]
    for source in sources:
        if not source.exists():
            sys.exit(f"{source} does not exist: give a folder, or set LONGTAIL_DATA")
    print(
        f"longtail {lt.__version__}, {platform.processor() or platform.machine()}, "
        f"{os.cpu_count()} cores; seed {args.seed}; python {' '.join(sys.argv)}"
    )
    for source in sources:
        measure(source, args.k, args.seed)


if __name__ == "__main__":
    main()
