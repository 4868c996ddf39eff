"""A tenth of the labels is held back and then added: cost and quality against training on all.

CPU seconds are the least of three runs, in turn.

LONGTAIL_DATA=FOLDER python benchmarks/linear/growing.py [TIB-SID-en DebDeps-src]
"""

from __future__ import annotations

import copy
import functools
import os
import platform
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from thread_scaling import features

import longtail as lt
from longtail.metrics import precision_at_k, recall_at_k


def timed(work: Any, least: float) -> tuple[Any, float]:
    begin = time.process_time()
    out = work()
    return out, min(least, time.process_time() - begin)


def main() -> None:
    print(f"$ python {' '.join(sys.argv)}    (seed 0)")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores\n")
    print("| data | | CPU s | P@1/3/5 | R@5 of new labels |\n|---|---|---:|---:|---:|")
    for name in sys.argv[1:] or ["TIB-SID-en", "DebDeps-src"]:
        X, Y, X_test, Y_test = features(name)
        n_labels = Y.shape[1]
        new = np.sort(np.random.default_rng(0).permutation(n_labels)[: n_labels // 10])
        old = np.setdiff1d(np.arange(n_labels), new)
        Y, Y_test = (M[:, np.concatenate([old, new])].tocsr() for M in (Y, Y_test))
        Y_old, Y_new = Y[:, : len(old)].tocsr(), Y[:, len(old) :].tocsr()
        none = sp.csr_matrix((Y_test.shape[0], len(old)), dtype=np.float32)
        only_new = sp.hstack([none, Y_test[:, len(old) :]], format="csr")
        has_new = np.flatnonzero(np.diff(only_new.indptr))
        model = lt.XRLinear(n_jobs=2).fit(X, Y_old)
        full = cost = np.inf
        for _ in range(3):
            grown = copy.copy(model)
            whole, full = timed(lambda X=X, Y=Y: lt.XRLinear(n_jobs=2).fit(X, Y), full)
            add = functools.partial(grown.add_labels, X, Y_new, Y_old=Y_old)
            grown, cost = timed(add, cost)
        for what, ranker, seconds in (("all at once", whole, full), ("added", grown, cost)):
            top = ranker.predict_topk(X_test, k=5)
            quality = "/".join(f"{100 * precision_at_k(Y_test, top, k=k):.2f}" for k in (1, 3, 5))
            recall = 100 * recall_at_k(only_new[has_new], top[has_new], k=5)
            share = f" ({100 * cost / full:.0f} %)" if ranker is grown else ""
            print(
                f"| {name} | {what} | {seconds:.1f}{share} | {quality} | {recall:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
