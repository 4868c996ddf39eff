"""Rows of two blocks against the same rows as one CSR matrix: time to train and to search.

    LONGTAIL_DATA=FOLDER python benchmarks/linear/dense_block.py DebDeps-src TIB-SID-en

TF-IDF rows and, beside them, vectors of 384 numbers: a random projection of the same rows, or with
``--vectors FOLDER`` the arrays ``NAME-train.npy`` and ``NAME-test.npy`` in it. One thread; the
forms in turns, the smallest CPU time of ``--repeat`` runs.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from thread_scaling import features

import longtail as lt
from longtail.features.unit_length import unit_rows
from longtail.metrics import precision_at_k

MODELS = {"xr-linear": lt.XRLinear, "one-vs-all": lt.OneVsAll}


def rows_of(name: str, width: int, folder: str | None) -> tuple[Any, Any, Any, Any]:
    X, Y, X_test, Y_test = features(name)
    if folder is not None:
        parts = ("train", "test")
        vectors = [np.load(Path(folder) / f"{name}-{part}.npy") for part in parts]
    else:
        rng = np.random.default_rng(0)
        directions = rng.standard_normal((X.shape[1], width)).astype(np.float32)
        vectors = [unit_rows(rows) @ directions for rows in (X, X_test)]
    return lt.features.beside(X, vectors[0]), Y, lt.features.beside(X_test, vectors[1]), Y_test


def seconds(work: Any) -> tuple[float, Any]:
    begin = time.process_time()
    out = work()
    return time.process_time() - begin, out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--models", default="xr-linear")
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--vectors")
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    print(f"$ python {' '.join(sys.argv)}")
    print(f"{platform.processor() or platform.machine()}, {lt.native_info()['isa']}, one thread\n")
    print("| data | model | rows | training, CPU s | search, µs/row | P@1 | P@5 |")
    print("|---|---|---|---:|---:|---:|---:|")
    for name in args.data:
        train, Y, test, Y_test = rows_of(name, args.width, args.vectors)
        forms = {
            "sparse block alone": (train.sparse, test.sparse),
            "one CSR matrix": (train.tocsr(), test.tocsr()),
            "two blocks": (train, test),
        }
        for kind in args.models.split(","):
            taken: dict[str, list[tuple[float, float, Any]]] = {form: [] for form in forms}
            for _ in range(args.repeat):
                for form, (X, X_test) in forms.items():
                    model = MODELS[kind](normalize=False, n_jobs=1)
                    to_train, _ = seconds(lambda m=model, X=X, Y=Y: m.fit(X, Y))
                    model.predict_topk(X_test[:5])
                    to_search, top = seconds(lambda m=model, X=X_test: m.predict_topk(X, k=5))
                    taken[form].append((to_train, to_search, top))
            for form, runs in taken.items():
                to_train, to_search = (min(run[i] for run in runs) for i in (0, 1))
                p1, p5 = (100 * precision_at_k(Y_test, runs[0][2], k=k) for k in (1, 5))
                each = 1e6 * to_search / len(test)
                times = f"{to_train:.2f} | {each:.0f}"
                print(f"| {name} | {kind} | {form} | {times} | {p1:.2f} | {p5:.2f} |", flush=True)


if __name__ == "__main__":
    main()
