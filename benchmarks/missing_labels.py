"""What do corrections for missing labels estimate, and what does training with them give?

    python benchmarks/missing_labels.py [--data Delicious Bibtex RCV1-subset1] [--seed 0]

1. Estimates of recall from observed labels: 100 labels that are relevant with probability 0.1 each,
   the answer is five of them, and all propensities are p. Mean and standard deviation over rows of
   the recall itself, of the bound and of the unbiased estimate (``normalized_weights``).
2. Training with normalised cross-entropy (``PALN``): the 100 most frequent labels of the first data
   set, labels dropped with 1/p from 2 to 20, frequent labels kept best, linear scores, L-BFGS. For
   regularisers over seven decades: the training loss as estimated from observed labels, and
   cross-entropy and recall at 5 on the complete labels of the test rows.
3. ``OneVsAll`` with each correction on every data set, labels dropped as above. C is chosen among
   five values by P@5 on the complete labels of a fifth of the training rows, for each correction;
   told are metrics on complete test labels, and CPU seconds of the last training.

``--data``: folders, or names below LONGTAIL_DATA. Without them, parts 2 and 3 use synthetic rows.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

import longtail as lt
from longtail import losses, metrics

CORRECTIONS = [
    ("nothing dropped", None, {}),
    ("no correction", None, {}),
    ("surrogate", "surrogate", {}),
    ("surrogate+balance", "surrogate+balance", {}),
    ("balance+surrogate", "balance+surrogate", {}),
    ("no correction, logistic", None, {"loss": "logistic"}),
    ("surrogate, logistic", "surrogate", {"loss": "logistic"}),
    ("unbiased, logistic", "unbiased", {"loss": "logistic"}),
    ("normalized, logistic", "normalized", {"loss": "logistic"}),
]
COSTS = (0.1, 0.3, 1.0, 3.0, 10.0)


def propensities(Y: sp.csr_matrix) -> np.ndarray:
    """1/p from 2 for the most frequent label to 20 for the rarest, linear in rank."""
    rank = np.empty(Y.shape[1])
    rank[np.argsort(-np.bincount(Y.indices, minlength=Y.shape[1]), kind="stable")] = np.linspace(
        0, 1, Y.shape[1]
    )
    return 1 / (2 + 18 * rank)


def drop(Y: sp.csr_matrix, p: np.ndarray, rng: np.random.Generator) -> sp.csr_matrix:
    seen = Y.copy()
    seen.data *= rng.random(seen.nnz) < p[seen.indices]
    seen.eliminate_zeros()
    return seen


def estimates(seed: int) -> None:
    print("1. Recall of five out of 100 labels, estimated; mean and standard deviation")
    rng = np.random.default_rng(seed)
    Y = sp.csr_matrix((rng.random((20_000, 100)) < 0.1).astype(np.float32))
    answer = np.arange(100) < 5
    truth = losses.normalized_weights(Y) @ answer
    print(f"   recall itself   {truth.mean():8.4f} {truth.std():12.4f}")
    for p in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2):
        seen = drop(Y, np.full(100, p), rng)
        line = f"   p = {p}: "
        for name in ("bound", "unbiased"):
            value = losses.normalized_weights(seen, np.full(100, p), estimate=name) @ answer
            line += f"  {name:>8} {value.mean():10.4f} {value.std():12.4f}"
        print(line, flush=True)


def train(X: Any, Y: Any, loss: Callable[..., Any], p: Any, l2: float) -> tuple[np.ndarray, float]:
    """``min_W mean_i loss(W x_i) + l2/2 |W|^2``; and the value of the first term there."""
    shape, n = (Y.shape[1], X.shape[1]), X.shape[0]
    last = [0.0]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(shape)
        value, gradient = loss(X @ W.T, Y, p)
        last[0] = value.mean()
        return last[0] + 0.5 * l2 * flat @ flat, (l2 * W + gradient.T @ X / n).ravel()

    found = minimize(
        objective, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B",
        options={"maxiter": 60, "maxfun": 80},
    )  # fmt: skip
    objective(found.x)
    return found.x.reshape(shape), float(last[0])


def study(rows: tuple[Any, Any, Any, Any], seed: int) -> None:
    X, Y, X_test, Y_test = rows
    best = np.sort(np.argsort(-np.bincount(Y.indices, minlength=Y.shape[1]), kind="stable")[:100])
    Y, Y_test = Y[:, best].tocsr(), Y_test[:, best].tocsr()
    p = propensities(Y)
    seen = drop(Y, p, np.random.default_rng(seed))
    X, X_test = (unit(rows).astype(np.float64) for rows in (X, X_test))
    labelled = np.diff(Y_test.indptr) > 0
    X_test, Y_test = X_test[labelled], Y_test[labelled]
    print(
        f"2. Normalised cross-entropy, {X.shape[0]:,} rows, {seen.nnz:,} of {Y.nnz:,} labels left"
    )
    print("   (training loss as estimated; cross-entropy and recall at 5 on complete test labels)")
    for name, loss, used in [
        ("complete", losses.PALN(), None),
        ("ignored", losses.PALN(), None),
        ("bound", losses.PALN(), p),
        ("unbiased", losses.PALN(estimate="unbiased"), p),
    ]:
        for l2 in 10.0 ** np.arange(-7, 0):
            W, value = train(X, Y if name == "complete" else seen, loss, used, l2)
            scores = X_test @ W.T
            clean = losses.PALN()(scores, Y_test).value.mean()
            recall = metrics.recall_at_k(Y_test, lt.TopK.from_scores(scores, k=5), k=5)
            print(
                f"   {name:<9} l2 = {l2:.0e}: training {value:14.4g}   test {clean:10.4g}   "
                f"R@5 {100 * recall:6.2f}",
                flush=True,
            )


def unit(X: Any) -> sp.csr_matrix:
    X = sp.csr_matrix(X)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1))).ravel()
    return sp.csr_matrix(sp.diags(1 / np.maximum(norms, 1e-12)) @ X)


def linear(name: str, rows: tuple[Any, Any, Any, Any], seed: int) -> None:
    X, Y, X_test, Y_test = rows
    p = propensities(Y)
    rng = np.random.default_rng(seed)
    seen = drop(Y, p, rng)
    order = rng.permutation(X.shape[0])
    held, rest = np.sort(order[: X.shape[0] // 5]), np.sort(order[X.shape[0] // 5 :])
    print(f"3. OneVsAll on {name}: {seen.nnz:,} of {Y.nnz:,} labels left")
    print("                              C    P@1    P@5    R@5  macro-F1@5  CPU s")
    for what, correction, params in CORRECTIONS:
        labels = Y if what == "nothing dropped" else seen
        extra = {} if correction is None else {"missing_labels": p, "correction": correction}

        settings = {**params, **extra, "random_state": seed}
        tried = {}
        for C in COSTS:
            model = lt.OneVsAll(C=C, **settings).fit(X[rest], labels[rest])
            top = model.predict_topk(X[held], k=5)
            tried[C] = metrics.precision_at_k(Y[held], top, k=5)
        C = max(tried, key=lambda cost: tried[cost])
        start = time.process_time()
        model = lt.OneVsAll(C=C, **settings).fit(X, labels)
        seconds = time.process_time() - start
        top = model.predict_topk(X_test, k=5)
        told = [
            metrics.precision_at_k(Y_test, top, k=1),
            metrics.precision_at_k(Y_test, top, k=5),
            metrics.recall_at_k(Y_test, top, k=5),
        ]
        macro = metrics.macro_f1_at_k(Y_test, top, k=5)
        line = " ".join(f"{100 * value:6.2f}" for value in told)
        print(f"   {what:<24} {C:>4g} {line} {100 * macro:11.2f} {seconds:6.2f}", flush=True)


def rows_of(source: str) -> tuple[Any, Any, Any, Any]:
    path = Path(source)
    if not path.exists():
        path = Path(os.environ["LONGTAIL_DATA"]) / source
    data = lt.load_dataset(path)
    return data.train.X, data.train.Y, data.test.X, data.test.Y


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--data", nargs="*", default=["Delicious", "Bibtex", "RCV1-subset1"])
    parser.add_argument("--parts", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print("$", " ".join(["python", *sys.argv]))
    print(
        platform.processor() or platform.machine(), lt.native_info()["isa"], os.cpu_count(), "CPUs"
    )
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, longtail {lt.__version__}")
    if "LONGTAIL_DATA" in os.environ or all(Path(name).exists() for name in args.data):
        sources = {Path(name).name: rows_of(name) for name in args.data}
    else:
        made = lt.data.make_longtail(n=4000, d=800, L=300, n_test=2000, random_state=args.seed)
        sources = {"synthetic": (made.train.X, made.train.Y, made.test.X, made.test.Y)}
    if 1 in args.parts:
        estimates(args.seed)
    if 2 in args.parts:
        study(next(iter(sources.values())), args.seed)
    if 3 in args.parts:
        for name, rows in sources.items():
            linear(name, rows, args.seed)


if __name__ == "__main__":
    main()
