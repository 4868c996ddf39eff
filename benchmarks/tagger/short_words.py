"""Words of one character: kept or left out, on short and on long texts.

    python benchmarks/tagger/short_words.py TIB-SID-en DebDeps-src icd10cm

For each data set (a folder in $LONGTAIL_DATA, or a name), over the vectoriser and the model that a
``Tagger`` chooses for it, and once more over texts cut to their first words (titles, in effect):
the same with ``min_word_length`` 2 and 1. Measured on the validation split where there is one, else
on a random tenth of the training rows; the test split stays unseen. Means over ``seeds`` tenths and
models; ± is the standard error of the mean difference over the rows measured on.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

import longtail as lt
from longtail.tagger import choose
from machine import print_machine


def main() -> None:
    parser = argparse.ArgumentParser(description="words of one character, kept or left out")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cut", type=int, default=8, help="words of the texts that are cut short")
    options = parser.parse_args()
    print_machine()
    print()
    print("| data | words a text | P@1, without | with | ± | P@5, without | with | ± |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in options.data:
        folder = os.path.join(os.environ.get("LONGTAIL_DATA", ""), name)
        data = lt.load_dataset(folder if os.path.isdir(folder) else name)
        mean = np.mean([len(text.split()) for text in data.train.texts])
        cuts = [None] if mean <= options.cut else [None, options.cut]
        for cut in cuts:
            found = [trial(data, seed, cut) for seed in range(options.seeds)]
            means = 100 * np.mean([rows.mean(axis=2) for rows in found], axis=0)
            errors = [(rows[1] - rows[0]).std(axis=1) / rows.shape[2] ** 0.5 for rows in found]
            cells = [f"{mean:.0f}" if cut is None else f"first {cut}"]
            for j, error in enumerate(100 * np.mean(errors, axis=0)):
                cells += [f"{means[0, j]:.2f}", f"{means[1, j]:.2f}", f"{error:.2f}"]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def trial(data: Any, seed: int, cut: int | None) -> np.ndarray:
    """P@1 and P@5 of each row, without and with words of one character, shape (2, 2, n)."""
    rows = np.random.default_rng(seed).permutation(len(data.train))
    train, valid = rows, None
    if data.dev is None:
        valid, train = rows[: len(rows) // 10], np.sort(rows[len(rows) // 10 :])
    texts = [shortened(data.train.texts[i], cut) for i in np.sort(train)]
    Y = data.train.Y[np.sort(train)]
    if valid is None:
        asked, truth = [shortened(text, cut) for text in data.dev.texts], data.dev.Y
    else:
        asked = [shortened(data.train.texts[i], cut) for i in valid]
        truth = data.train.Y[valid]
    has = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))  # as a tagger does
    Y, truth = Y[:, has], truth[:, has]
    out = []
    for length in (2, 1):
        chosen = choose(texts, len(has), random_state=seed)
        words = chosen.vectorizer.set_params(min_word_length=length)
        top = chosen.model.fit(words.fit_transform(texts), Y).predict_topk(words.transform(asked))
        hits = [top.head(k).to_csr(binary=True).multiply(truth > 0).sum(axis=1) for k in (1, 5)]
        out.append([np.asarray(row).ravel() / k for row, k in zip(hits, (1, 5), strict=True)])
    return np.array(out)


def shortened(text: str, cut: int | None) -> str:
    return text if cut is None else " ".join(text.split()[:cut])


if __name__ == "__main__":
    main()
