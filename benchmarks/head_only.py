"""What a metric sees of the tail: a model trained on all labels against one trained on the head.

    LONGTAIL_DATA=... python benchmarks/head_only.py Delicious CiteULike-t TIB-SID-en

The second model sees only the most frequent labels: those that hold ``--volume`` of the training
positives (0.6 by default), or ``--share`` of all labels. All others are removed from its training
rows. Both are measured on the full test set. After table 4.1 of E. Schultheis, doctoral thesis,
Aalto University 2025 (there the 1,000 most frequent of AmazonCat-13K's 13,330 labels).
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
import scipy.sparse as sp

import longtail as lt

METRICS = {
    "P": "precision",
    "nDCG": "ndcg",
    "PSP": "ps_precision",
    "macro-P": "macro_precision",
    "macro-R": "macro_recall",
    "macro-F1": "macro_f1",
    "coverage": "coverage",
}
KS = (1, 3, 5)


def head_only(Y: sp.csr_matrix, volume: float, share: float | None) -> tuple[sp.csr_matrix, int]:
    """``Y`` with only its most frequent labels, and how many they are."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    order = np.argsort(-counts, kind="stable")
    if share is None:
        n = int(np.searchsorted(np.cumsum(counts[order]), volume * counts.sum())) + 1
    else:
        n = max(1, round(share * Y.shape[1]))
    kept = np.zeros(Y.shape[1], bool)
    kept[order[:n]] = True
    stays = kept[Y.indices]
    ends = np.concatenate([[0], np.cumsum(stays, dtype=np.int64)])
    return sp.csr_matrix((Y.data[stays], Y.indices[stays], ends[Y.indptr]), shape=Y.shape), n


def measured(Y: Any, top: lt.TopK, propensity: Any) -> dict[str, list[float]]:
    matches = lt.metrics.match(Y, top, max(KS))
    out = {}
    for symbol, name in METRICS.items():
        metric = getattr(lt.metrics, f"{name}_at_k")
        extra = (propensity,) if symbol == "PSP" else ()
        out[symbol] = [float(metric(None, matches, *extra, k=k)) for k in KS]
    return out


def compare(name: str, volume: float, share: float | None, seed: int) -> None:
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / name)
    X, X_test = data.train.X, data.test.X
    if X is None:
        tfidf = lt.Tfidf()
        X, X_test = tfidf.fit_transform(data.train.texts), tfidf.transform(data.test.texts)
    Y = data.train.Y
    head, n_head = head_only(Y, volume, share)
    propensity = lt.JainPropensity().fit(Y)
    start = time.process_time()
    found = [
        measured(data.test.Y, model.predict_topk(X_test, max(KS)), propensity)
        for model in (lt.XRLinear(random_state=seed).fit(X, labels) for labels in (Y, head))
    ]
    print(
        f"\n{name}: {Y.shape[1]:,} labels, {n_head:,} in the head with "
        f"{100 * head.nnz / Y.nnz:.0f} % of the training positives; "
        f"{time.process_time() - start:.0f} s of processor time"
    )
    print(
        "| metric   |" + "".join(f" all @{k} |" for k in KS) + "".join(f" head @{k} |" for k in KS)
    )
    print("|----------|" + "-------:|" * 3 + "----------------:|" * 3)
    for symbol in METRICS:
        full, part = found[0][symbol], found[1][symbol]
        cells = [f" {100 * value:6.2f} |" for value in full]
        for a, b in zip(full, part, strict=True):
            change = f"({100 * (b / a - 1):+.1f} %)" if a else ""
            cells.append(f" {100 * b:6.2f} {change:>9} |")
        print(f"| {symbol:8} |" + "".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", metavar="DATA")
    parser.add_argument("--volume", type=float, default=0.6)
    parser.add_argument("--share", type=float)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"{platform.platform()}, {lt.native_info()}")
    print(f"python {platform.python_version()}, numpy {np.__version__}")
    print("command:", " ".join(["python", *sys.argv]), "seed:", args.seed)
    for name in args.data:
        compare(name, args.volume, args.share, args.seed)


if __name__ == "__main__":
    main()
