"""What the automatic choice of a ``Tagger`` rests on: vectorisers and models on real data.

    python benchmarks/tagger/choices.py TIB-SID-en DebDeps-src icd10cm Bibtex Delicious

For each data set (a folder in $LONGTAIL_DATA, or a name): words, and words with pairs; one tree,
three trees (also with more of their small weights kept), one-vs-all, nearest neighbours, and one
tree that also learned from the texts of labels. Measured on the validation split where there is
one, else on rows held out of the training split; the test split stays unseen. Seconds are those of
the processor, of training and answering; the chosen line is marked.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail import metrics
from longtail.tagger import choose, make_model
from machine import print_machine

NGRAMS = {"words": (1, 1), "words and pairs": (1, 2)}
SLOW = 4e10  # rows × labels, from which one-vs-all is left out


def main() -> None:
    print_machine()
    for name in sys.argv[1:]:
        folder = os.path.join(os.environ.get("LONGTAIL_DATA", ""), name)
        data = lt.load_dataset(folder if os.path.isdir(folder) else name)
        train, valid = data.train, data.dev
        if valid is None:
            train, valid = lt.data.train_validation_split(data.train)
        chosen = choose(train.texts or [""] * len(train), data.n_labels, features=not train.texts)
        print(f"\n{name}: {len(train):,} rows, {data.n_labels:,} labels. {chosen.why}\n")
        print("| over | model | CPU s | P@1 | P@5 | PSP@5 | macro-F1 present@5 |")
        print("|---|---|---:|---:|---:|---:|---:|", flush=True)
        propensity = lt.JainPropensity().fit(train.Y)
        for over, title, ranker, X, Y, X_valid in trials(data, train, valid):
            began = time.process_time()
            top = ranker.fit(X, Y).predict_topk(X_valid, 5)
            seconds = time.process_time() - began
            grams = getattr(chosen.vectorizer, "ngram_range", None)
            same = repr(ranker) == repr(chosen.model) and NGRAMS.get(over) == grams
            marked = f"**{title}**" if same and X.shape[0] == len(train) else title
            numbers = " | ".join(f"{100 * x:.2f}" for x in measure(valid.Y, top, propensity))
            print(f"| {over} | {marked} | {seconds:.1f} | {numbers} |", flush=True)


def trials(data: Any, train: Any, valid: Any) -> Iterator[tuple[str, str, Any, Any, Any, Any]]:
    """What is compared: over what, its title, the model, rows and labels, rows to answer."""
    small = data.n_labels * len(train) <= SLOW
    for over, ngrams in NGRAMS.items() if train.texts else [("features", None)]:
        X, X_valid = train.X, valid.X
        if ngrams:
            vectorizer = lt.Tfidf(ngram_range=ngrams)
            X, X_valid = vectorizer.fit_transform(train.texts), vectorizer.transform(valid.texts)
        names = ["xr-linear", "ensemble"]
        if ngrams != (1, 2):
            names += ["nearest-neighbors", *(["one-vs-all"] if small else [])]
        for kind in names:
            yield over, kind, make_model(kind), X, train.Y, X_valid
        if ngrams == (1, 2):
            continue
        trees = [lt.XRLinear(threshold=0.03, random_state=seed) for seed in range(3)]
        fuller = lt.Ensemble(models=trees)
        yield over, "ensemble, threshold 0.03", fuller, X, train.Y, X_valid
        if data.label_texts is not None and ngrams:
            rows = vectorizer.transform(data.label_texts)
            own = sp.identity(data.n_labels, np.float32, "csr")
            Y = sp.vstack([train.Y, own]).tocsr()
            model = make_model("xr-linear")
            yield over, "xr-linear, label texts", model, sp.vstack([X, rows]).tocsr(), Y, X_valid


def measure(Y: Any, top: Any, propensity: Any) -> list[float]:
    return [
        metrics.precision_at_k(Y, top, k=1),
        metrics.precision_at_k(Y, top, k=5),
        metrics.ps_precision_at_k(Y, top, propensity, k=5),
        metrics.macro_f1_at_k(Y, top, k=5, labels="present"),
    ]


if __name__ == "__main__":
    main()
