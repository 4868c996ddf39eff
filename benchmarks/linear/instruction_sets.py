"""The same work on every instruction set of this machine: CPU seconds, and how they compare.

    LONGTAIL_DATA=FOLDER python benchmarks/linear/instruction_sets.py Delicious CiteULike-t

Every measurement is a process of its own with ``LONGTAIL_SIMD`` set, one thread; the instruction
sets take turns, and the smallest of ``--repeat`` runs counts. Most laptops and many servers have
AVX2 and no AVX-512; ``portable`` is what any other x86-64 runs (SSE2), and on ARM it is NEON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from thread_scaling import features

import longtail as lt

NAMES = ["avx512", "avx2", "portable"]


def measure(data: str) -> dict[str, float]:
    """CPU seconds of each step, and precision, to see that all did the same work."""
    X, Y, X_test, Y_test = features(data)
    found: dict[str, float] = {}

    def timed(what: str, work: Callable[[], Any]) -> Any:
        begin = time.process_time()
        out = work()
        found[what] = time.process_time() - begin
        return out

    batch = X_test[np.arange(max(20_000, X_test.shape[0])) % X_test.shape[0]]
    models = {
        "XRLinear": lt.XRLinear(random_state=0, n_jobs=1),
        "OneVsAll": lt.OneVsAll(random_state=0, n_jobs=1),
        "MACH": lt.MACH(random_state=0, n_jobs=1),
    }
    for name, model in models.items():
        if name != "XRLinear" and Y.shape[1] > 2000:
            continue
        timed(f"{name}, training", lambda model=model: model.fit(X, Y))
        top = timed(
            f"{name}, search of {batch.shape[0]:,} rows",
            lambda model=model: model.predict_topk(batch, k=5),
        )
        answers = lt.TopK(top.indices[: Y_test.shape[0]], top.scores[: Y_test.shape[0]], Y.shape[1])
        found[f"{name}, P@1"] = 100 * float(lt.metrics.precision_at_k(Y_test, answers, k=1))
    return found


def in_a_process(data: str, name: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", data],
        env={**os.environ, "LONGTAIL_SIMD": name},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.data[0])))
        return
    best = str(lt.native_info()["best_isa"])
    names = NAMES[NAMES.index(best) :]
    machine = platform.processor() or platform.machine()
    print(f"$ python {' '.join(sys.argv)}\n{machine}, one thread, CPU seconds\n")
    print(f"| data | step | {' | '.join(names)} |\n|---|---|{'---:|' * len(names)}")
    for data in args.data:
        runs = {name: [] for name in names}
        for _ in range(args.repeat):
            for name in names:
                runs[name].append(in_a_process(data, name))
        for step in runs[names[0]][0]:
            least = [min(run[step] for run in runs[name]) for name in names]
            cells = [f"{least[0]:.2f}"]
            for seconds in least[1:]:
                ratio = (
                    "" if "P@" in step else f" ({seconds / least[0]:.2f}\N{MULTIPLICATION SIGN})"
                )
                cells.append(f"{seconds:.2f}{ratio}")
            print(f"| {data} | {step} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
