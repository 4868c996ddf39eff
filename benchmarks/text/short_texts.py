"""Encoders of short texts that begin from nothing, beside ``Network`` on TF-IDF rows.

    python benchmarks/text/short_texts.py [--data TIB-SID-en ICD-10-CM] [--device cuda] [--held-out]

TIB-SID-en is cut to its titles. Every finished run is a line of the journal and is not made again.
All models train with their defaults.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from compare import measured, table
from journal import Journal

import longtail as lt

MODELS = ("network", "average", "convolution")


def texts_of(name: str, held_out: bool) -> tuple[Any, ...]:
    """Return texts and labels to learn from, and others to measure on."""
    if name == "ICD-10-CM":
        data = lt.load_dataset("icd10cm")
        train, test, dev = data.train, data.test, None
        cut = list
    else:
        data = lt.load_dataset(Path(os.environ["LONGTAIL_DATA"]) / name)
        train, test, dev = data.train, data.test, data.dev

        def cut(texts: Any) -> list[str]:
            return [text.split(". ")[0] for text in texts]

    texts, Y = cut(train.texts), train.Y
    if held_out and dev is not None:
        return texts, Y, cut(dev.texts), dev.Y
    if held_out:
        order = np.random.default_rng([0, 20]).permutation(len(texts))
        valid, rest = np.sort(order[: len(order) // 10]), np.sort(order[len(order) // 10 :])
        return [texts[i] for i in rest], Y[rest], [texts[i] for i in valid], Y[valid]
    return texts, Y, cut(test.texts), test.Y


def run(data: tuple[Any, ...], model: str, seed: int, device: str, jobs: int) -> dict[str, Any]:
    """Train one model and measure it."""
    texts, Y, others, Y_other = data
    began = time.perf_counter()
    if model == "network":
        vectorizer = lt.Tfidf(n_jobs=jobs)
        X, X_other = vectorizer.fit_transform(texts), vectorizer.transform(others)
        trained = lt.Network(random_state=seed, device=device, n_jobs=jobs).fit(X, Y)
        top = trained.predict_topk(X_other, k=5)
    else:
        trained = lt.TextNetwork(encoder=model, random_state=seed, device=device, n_jobs=jobs)
        top = trained.fit(texts, Y).predict_topk(others, k=5)
    return {**measured(Y, Y_other, top), "seconds": round(time.perf_counter() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=["TIB-SID-en", "ICD-10-CM"])
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--journal", type=Path, default=Path("short-texts.jsonl"))
    parser.add_argument("--print", dest="only_print", action="store_true")
    options = parser.parse_args()
    if options.only_print:
        table(options.journal)
        return
    journal = Journal(options.journal)
    for name in options.data:
        data = texts_of(name, options.held_out)
        for seed in options.seeds:
            for model in options.models:
                label = ("held-out " if options.held_out else "") + model
                about = {"data": name, "setting": label, "seed": seed}
                if not journal.has(about):
                    found = run(data, model, seed, options.device, options.jobs)
                    journal.write({**about, **found})


if __name__ == "__main__":
    main()
