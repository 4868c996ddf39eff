"""Data sets of the comparison, what is held out of them, and what is measured."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import longtail as lt

NAMES = ("Bibtex", "Delicious", "CiteULike-t", "TIB-SID-en")
COMPONENTS = {"Bibtex": 100, "Delicious": 100, "CiteULike-t": 200, "TIB-SID-en": 200}


@dataclass(frozen=True)
class Rows:
    """Rows to learn from and rows to be judged by."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


@cache
def load(name: str) -> Rows:
    """A folder below LONGTAIL_DATA; texts become TF-IDF rows."""
    data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / name)
    X, X_test = data.train.X, data.test.X
    if X is None:
        vectoriser = lt.Tfidf()
        X = vectoriser.fit_transform(data.train.texts)
        X_test = vectoriser.transform(data.test.texts)
    return Rows(X, data.train.Y, X_test, data.test.Y)


@cache
def held_out(name: str, split: int = 0, share: float = 0.2) -> Rows:
    """A part of the training rows to choose settings on, and the others; no test row at all."""
    rows = load(name)
    order = np.random.default_rng([split, 20]).permutation(rows.X.shape[0])
    n = int(len(order) * share)
    valid, rest = np.sort(order[:n]), np.sort(order[n:])
    return Rows(rows.X[rest], rows.Y[rest], rows.X[valid], rows.Y[valid])


def precisions(Y: Any, top: lt.TopK) -> list[float]:
    return [100 * float(lt.metrics.precision_at_k(Y, top, k=k)) for k in (1, 3, 5)]


def measured(rows: Rows, top: lt.TopK) -> dict[str, Any]:
    """Of head and tail, in percent: precision and propensity-scored precision at 1, 3, 5, macro-F1
    at 5 over the labels of the test rows, and recall at 5 of the rarer half of the labels.
    """
    Y, metrics = rows.Y_test, lt.metrics
    propensity = lt.JainPropensity().fit(rows.Y)
    counts = np.bincount(rows.Y.indices, minlength=rows.Y.shape[1])
    rare = np.flatnonzero(counts <= np.quantile(counts[counts > 0], 0.5))
    hits = top.to_csr(binary=True).multiply(Y).tocsc()[:, rare].sum()
    macro = metrics.macro_f1_at_k(Y, top, k=5, labels="present")
    return {
        "P": precisions(Y, top),
        "PSP": [100 * float(metrics.ps_precision_at_k(Y, top, propensity, k=k)) for k in (1, 3, 5)],
        "macro": 100 * float(macro),
        "rare": 100 * float(hits) / max(1.0, float(Y[:, rare].sum())),
    }
