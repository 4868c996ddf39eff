"""Label texts as training rows: what the data D, the label rows Z and their variants give.

Rows of the table, for a linear model, TextNetwork(encoder="average") and a pretrained encoder, on
titles of TIB-SID-en and on DebDeps-src:

    D           the training rows
    Z           Gandalf's rows alone: label texts with targets from co-occurrence
    D+Z         both
    sample      a sample of D+Z as large as D
    one-hot     D and label texts with their own label alone
    glas        D and label texts with symmetrised targets
    walk        D and label texts with targets from random walks
    tail        D and Gandalf's rows of half of the labels, rare ones first

    python benchmarks/text/gandalf.py --model linear                       # reads LONGTAIL_DATA
    python benchmarks/text/gandalf.py --model average --rows prepared/
    python benchmarks/text/gandalf.py --model ENCODER_FOLDER --rows prepared/
    python benchmarks/text/gandalf.py --print

Tokens are prepared by ``rows.py``: with ``--titles --label-texts`` for TIB-SID-en, with
``--label-texts`` for DebDeps-src, once for the encoder and once for ``words`` (average). Every
finished run is a line of the journal; one that is in it is not made again. ``--held-out`` measures
on dev rows (or a tenth of the training rows) instead of the test rows; ``--delta 0.5`` and
``--set epochs=10`` name the run.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import rows as prepared
from compare import measured, settings_of
from journal import Journal, means

import longtail as lt
from longtail.augment import append_rows, gandalf, tail_first

DATA = ("TIB-SID-en-titles", "DebDeps-src")
ROWS = ("D", "Z", "D+Z", "sample", "one-hot", "glas", "walk", "tail")
GRAPHS = {"one-hot": "self", "glas": "symmetric", "walk": "random-walk"}


def training_rows(which: str, X: Any, Y: Any, Z: Any, delta: float, seed: int) -> Any:
    """Return the rows to learn from, their labels, and how many of the last are label rows."""
    if which == "D":
        return X, Y, 0
    how: dict[str, Any] = {"graph": GRAPHS.get(which, "co-occurrence"), "random_state": seed}
    if which == "tail":
        how["labels"] = tail_first(Y, Y.shape[1] // 2, random_state=seed)
    extra_X, extra_Y = gandalf(Y, Z, delta, **how)
    if which == "Z":
        return extra_X, extra_Y, extra_Y.shape[0]
    n = Y.shape[0]
    X, Y = append_rows(X, Y, extra_X, extra_Y)
    if which == "sample":
        chosen = np.sort(np.random.default_rng([seed, 21]).permutation(Y.shape[0])[:n])
        return X[chosen], Y[chosen], int((chosen >= n).sum())
    return X, Y, Y.shape[0] - n


def fitted(name: str, which: str, parts: Any, params: dict[str, Any], delta: float) -> Any:
    """Return a model trained on rows of this kind, and what it is asked with."""
    X, Y, Z, other = parts
    seed = params["random_state"]
    if name != "linear":
        encoder = "average" if name == "average" else name
        rows, labels, n = training_rows(which, X, Y, Z, delta, seed)
        model = lt.TextNetwork(**{"encoder": encoder, "onnx": False, **params})
        return model.fit(rows, labels, n_label_rows=n), other
    from longtail.tagger.choose_terms import choose_terms

    vectorizer = choose_terms(X, None, None).vectorizer.fit(X)  # as a Tagger would choose
    X, Z, other = (vectorizer.transform(texts) for texts in (X, Z, other))
    rows, labels, n = training_rows(which, X, Y, Z, delta, seed)
    return lt.XRLinear(**params).fit(rows, labels, n_label_rows=n), other


def run(
    name: str, data: str, which: str, folder: Path, options: argparse.Namespace, params: Any
) -> dict[str, Any]:
    """Train and measure one model on one kind of rows."""
    if name == "linear":
        bare = data.removesuffix("-titles")
        rows = prepared.read_texts(bare, titles=bare != data)
    else:
        rows = prepared.load(data + ("-words" if name == "average" else ""), folder)
    if options.held_out:
        X, Y, other, Y_other = rows.held_out()
    else:
        X, Y, other, Y_other = (
            part[split] for split in ("train", "test") for part in (rows.tokens, rows.Y)
        )
    began = time.perf_counter()
    model, other = fitted(name, which, (X, Y, rows.labels, other), params, options.delta)
    top = model.predict_topk(other, k=5)
    seconds = round(time.perf_counter() - began, 1)
    coverage = [lt.metrics.coverage_at_k(Y_other, top, k=k, labels="present") for k in (1, 3, 5)]
    return {
        **measured(Y, Y_other, top),  # propensities of the training rows alone
        "coverage": [round(100 * float(value), 2) for value in coverage],
        "seconds": seconds,
    }


def table(journal: Path) -> None:
    """Print the mean over seeds of every run."""
    print(
        "| data | model | rows | seeds | P@1/3/5 | PSP@1/3/5 | coverage@1/3/5 | labels found "
        "| seconds |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    order = {which: i for i, which in enumerate(ROWS)}
    groups = Journal(journal).groups(("data", "model", "setting", "rows"), "P")
    for key in sorted(groups, key=lambda key: (*key[:3], order[key[3]])):
        data, model, setting, which = key
        runs = groups[key]
        cells = [data, f"{model} {setting}".strip(), which, str(len(runs))]
        cells += [means(runs, name) for name in ("P", "PSP", "coverage")]
        cells += [means(runs, name, 0) for name in ("found", "seconds")]
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="linear", help="linear, average or an encoder's folder")
    parser.add_argument("--rows", type=Path, default=Path("prepared"))
    parser.add_argument("--journal", type=Path, default=Path("gandalf-runs.jsonl"))
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--kinds", nargs="*", default=list(ROWS), choices=ROWS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--delta", type=float, default=0.1)
    parser.add_argument("--set", dest="settings", default="")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--print", dest="only_print", action="store_true")
    options = parser.parse_args()
    if options.only_print:
        table(options.journal)
        return
    setting = "held-out " * options.held_out + options.settings
    setting += f" delta={options.delta:g}" * (options.delta != 0.1)
    setting = setting.strip()
    keys = ("data", "model", "setting", "rows", "seed")
    journal = Journal(options.journal, keys)
    print(f"{platform.platform()}, {lt.native_info()}, {' '.join(sys.argv)}", flush=True)
    shown = Path(options.model).name
    for data in options.data:
        for which in options.kinds:
            for seed in options.seeds:
                about = dict(zip(keys, (data, shown, setting, which, seed), strict=True))
                if journal.has(about):
                    continue
                params = {"random_state": seed, **settings_of(options.settings)}
                result = run(options.model, data, which, options.rows, options, params)
                journal.write({**about, **result})


if __name__ == "__main__":
    main()
