"""What the automatic choice of a ``Tagger`` rests on: vectorisers and models on real texts.

    python benchmarks/tagger/choices.py TIB-SID-en DebDeps-src icd10cm

For each data set (a folder in $LONGTAIL_DATA, or a name): words, and words with pairs; one tree,
three trees, one-vs-all, and one tree that also learned from the texts of labels. Measured on the
validation split where there is one, else on rows held out of the training split.
"""

from __future__ import annotations

import os
import platform
import sys
import time

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail import metrics
from longtail.tagger import make_model

VECTORIZERS = {"words": (1, 1), "words and pairs": (1, 2)}
MODELS = ("xr-linear", "ensemble", "one-vs-all")


def main() -> None:
    cores = os.cpu_count()
    print(f"{platform.processor() or platform.machine()}, {cores} cores, longtail {lt.__version__}")
    print("python", *sys.argv)
    for name in sys.argv[1:]:
        folder = os.path.join(os.environ.get("LONGTAIL_DATA", ""), name)
        data = lt.load_dataset(folder if os.path.isdir(folder) else name)
        train, valid = data.train, data.dev
        if valid is None:
            train, valid = lt.train_validation_split(data.train)
        words = np.mean([len(text.split()) for text in train.texts[:2000]])
        print(f"\n{name}: {len(train):,} texts of {words:.0f} words, {data.n_labels:,} labels")
        propensity = lt.JainPropensity().fit(train.Y)
        for over, ngrams in VECTORIZERS.items():
            vectorizer = lt.Tfidf(ngram_range=ngrams)
            X, X_valid = vectorizer.fit_transform(train.texts), vectorizer.transform(valid.texts)
            for kind in MODELS:
                if ngrams == (1, 2) and kind == "one-vs-all":
                    continue  # the slowest of all, and it changes no decision
                fit(kind, over, kind, X, train.Y, X_valid, valid.Y, propensity)
            if data.label_texts is not None and ngrams == (1, 1):
                rows = vectorizer.transform(data.label_texts)
                X_more = sp.vstack([X, rows]).tocsr()
                own = sp.identity(data.n_labels, np.float32, "csr")
                Y_more = sp.vstack([train.Y, own]).tocsr()
                title = "xr-linear, label texts"
                fit("xr-linear", over, title, X_more, Y_more, X_valid, valid.Y, propensity)


def fit(kind, over, title, X, Y, X_valid, Y_valid, propensity) -> None:
    began = time.perf_counter()
    top = make_model(kind).fit(X, Y).predict_topk(X_valid, 5)
    seconds = time.perf_counter() - began
    p1, p5 = (100 * metrics.precision_at_k(Y_valid, top, k=k) for k in (1, 5))
    psp = 100 * metrics.ps_precision_at_k(Y_valid, top, propensity, k=5)
    f1 = 100 * metrics.macro_f1_at_k(Y_valid, top, k=5, labels="present")
    print(
        f"{over:<16} {title:<24} {seconds:7.1f} s  P@1 {p1:5.2f}  P@5 {p5:5.2f}  "
        f"PSP@5 {psp:5.2f}  macro-F1 present@5 {f1:5.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
