"""Smaller models: bytes, speed and quality of rounding and pruning.

LONGTAIL_DATA=FOLDER python benchmarks/linear/compact.py [TIB-SID-en DebDeps-src]
"""

from __future__ import annotations

import os
import platform
import sys
import time
from typing import Any

from thread_scaling import features

import longtail as lt
from longtail.metrics import precision_at_k


def main() -> None:
    print(f"$ python {' '.join(sys.argv)}    (seed 0)")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores\n")
    print("| data | model | MB | batch CPU us/query | P@1/3/5 |\n|---|---|---:|---:|---:|")
    for name in sys.argv[1:] or ["TIB-SID-en", "DebDeps-src"]:
        X, Y, X_test, Y_test = features(name)
        model = lt.XRLinear(n_jobs=2).fit(X, Y)
        half, third = model.nbytes / 2e6, model.nbytes / 3e6
        models: dict[str, Any] = {
            "float32": model,
            "bf16": lt.linear.compact(model, precision="bf16"),
            "int8": lt.linear.compact(model),
            "int8, half the size": lt.linear.compact(model, target_mb=half),
            "int8, a third of the size": lt.linear.compact(model, target_mb=third),
        }
        for what, ranker in models.items():
            times = []
            for _ in range(5):
                begin = time.process_time()
                top = ranker.predict_topk(X_test, k=5)
                times.append(time.process_time() - begin)
            each = 1e6 * min(times) / X_test.shape[0]
            quality = "/".join(f"{100 * precision_at_k(Y_test, top, k=k):.2f}" for k in (1, 3, 5))
            size = ranker.nbytes / 1e6
            print(f"| {name} | {what} | {size:.1f} | {each:.0f} | {quality} |", flush=True)


if __name__ == "__main__":
    main()
