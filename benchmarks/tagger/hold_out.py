"""What a tenth of the rows says about the official test split, by how the tenth is drawn.

    python benchmarks/tagger/hold_out.py TIB-SID-en DebDeps-src CiteULike-t Delicious

For each data set (a folder in $LONGTAIL_DATA, or a name), one tree on words (or the features that
are there), seed 0, asked about a tenth of the training rows that it has not seen, drawn (1) so that
no label loses its last training row, as ``lt.data.train_validation_split`` does, and (2) at
random, as ``longtail train`` does; then (3), fitted on all training rows, about the test split.
Labels that the model does not know count as missed.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

import longtail as lt
from longtail import metrics
from longtail.data import train_validation_indices
from longtail.tagger import choose, make_model
from machine import print_machine


def main() -> None:
    print_machine()
    print("\n| data | measured on | rows | P@1 | P@5 | R@5 |")
    print("|---|---|---:|---:|---:|---:|", flush=True)
    for name in sys.argv[1:]:
        folder = os.path.join(os.environ.get("LONGTAIL_DATA", ""), name)
        data = lt.load_dataset(folder if os.path.isdir(folder) else name)
        train, n = data.train, len(data.train)
        drawn = np.zeros(n, bool)
        drawn[np.random.default_rng(0).permutation(n)[: n // 10]] = True
        draws = {
            "a tenth that spares rare labels": train_validation_indices(train.Y, random_state=0),
            "a random tenth": (np.flatnonzero(~drawn), np.flatnonzero(drawn)),
        }
        for title, (rest, tenth) in draws.items():
            show(name, title, train.take(rest), train.take(tenth), data.n_labels)
        show(name, "the test split", train, data.test, data.n_labels)


def show(name: str, title: str, train: Any, test: Any, n_labels: int) -> None:
    """Fit on one split, measure on the other, print a line of the table."""
    X, X_test = train.X, test.X
    if train.texts is not None:
        vectorizer = choose(train.texts, n_labels).vectorizer
        X, X_test = vectorizer.fit_transform(train.texts), vectorizer.transform(test.texts)
    top = make_model("xr-linear").fit(X, train.Y).predict_topk(X_test, 5)
    values = [
        metrics.precision_at_k(test.Y, top, k=1),
        metrics.precision_at_k(test.Y, top, k=5),
        metrics.recall_at_k(test.Y, top, k=5),
    ]
    shown = " | ".join(f"{100 * value:.1f}" for value in values)
    print(f"| {name} | {title} | {len(test):,} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
