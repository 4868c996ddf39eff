"""Models that read label texts, on TIB-SID-en and DebDeps-src, and labels without training rows.

Rows are prepared by ``rows.py --label-texts``. Every finished run is a line of the journal; one
that is in it is not made again, so the table can be filled in several sittings:

    python benchmarks/text/label_texts.py --encoder FOLDER --rows prepared/ --journal runs.jsonl
    python benchmarks/text/label_texts.py --journal runs.jsonl --print

Kinds: "unidec" (answers of both heads and of each alone, and the vote of the 50 nearest training
rows by its vectors), "dual-encoder", "classifier" (UniDEC's, trained alone), "as-published" (plain
products in training), "untrained" (cosines of the encoder as it comes). Where rows name labels that
no training row has, these join the model of the first seed and are looked for among all; elsewhere
1,000 labels are left out of the training of a further model ("unseen", "unseen-untrained").
``--held-out`` and ``--set`` as in ``compare.py``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parent))

import rows as prepared
from compare import measured, settings_of
from journal import Journal, means

import longtail as lt

KINDS = (
    "unidec",
    "dual-encoder",
    "classifier",
    "as-published",
    "untrained",
    "unseen",
    "unseen-untrained",
)
ANSWERS = {
    "both": ("both", 0.5),
    "both, 1/4 classifier": ("both", 0.25),
    "both, 3/4 classifier": ("both", 0.75),
    "classifier": ("classifier", 0.5),
    "dual": ("dual", 0.5),
}
MARGINS = (0.0, 0.1, None)


def made(kind: str, params: dict[str, Any]) -> Any:
    if kind == "dual-encoder":
        return lt.DualEncoder(**params)
    if kind.endswith("untrained"):
        still = {"epochs": 1, "learning_rate": 1e-9, "head_learning_rate": 1e-9}
        return lt.DualEncoder(**{**params, **still})
    own = {
        "classifier": {"balance": 0.0, "answer": "classifier"},
        "as-published": {"cosine": False},
    }
    return lt.UniDEC(**{**own.get(kind, {}), **params})


def run(
    kind: str, name: str, folder: Path, params: dict[str, Any], held_out: bool, first: bool
) -> list[Any]:
    """Train one model; return one record per answer. The ``first`` seed looks for new labels."""
    rows = prepared.load(name, folder)
    split = "dev" if held_out and "dev" in rows.tokens else "test"
    tokens, Y, other, Y_other = (
        rows.held_out()
        if held_out
        else (rows.tokens["train"], rows.Y["train"], rows.tokens["test"], rows.Y["test"])
    )
    new, new_Y, labels = rows.new, rows.new_Y.get(split), rows.labels
    if kind.startswith("unseen"):
        if new is not None:
            return []  # the other kinds have looked for them
        tokens, Y, Y_other, labels, new, new_Y = left_out(tokens, Y, Y_other, labels)
    few = slice(2 if kind.endswith("untrained") else None)
    began = time.perf_counter()
    model = made(kind, params).fit(tokens[few], Y[few], label_texts=labels)
    about = {"seconds": round(time.perf_counter() - began, 1)}
    if kind.endswith("untrained"):
        model.has_rows_[:] = True  # no margin among these labels
    records = []
    if not kind.startswith("unseen"):
        for answer in answers_of(model, kind):
            top = with_answer(model, answer).predict_topk(other, k=5)
            records.append({"answer": answer, **about, **measured(Y, Y_other, top)})
    if kind == "unidec":
        vote = lt.baselines.NearestNeighbors(n_neighbors=50, weights="softmax", temperature=0.05)
        top = vote.fit(model.embed(tokens), Y).predict_topk(model.embed(other), k=5)
        records.append({"answer": "vote", **about, **measured(Y, Y_other, top)})
    if new is not None and first and kind not in ("classifier", "as-published"):
        answers = ["both", "classifier", "dual"] if model.has_table else ["dual"]
        found = unseen(model, answers, other, Y_other, new, new_Y)
        records += [{**about, **record} for record in found]
    return records


def answers_of(model: Any, kind: str) -> list[str]:
    if not model.has_table:
        return ["dual"]
    return ["classifier"] if kind == "classifier" else list(ANSWERS)


def left_out(tokens: Any, Y: Any, Y_other: Any, labels: Any) -> tuple[Any, ...]:
    """Leave 1,000 labels that the other rows have out of the training: they become new ones."""
    present = np.flatnonzero(np.bincount(Y_other.indices, minlength=Y.shape[1]))
    chosen = np.sort(np.random.default_rng(0).choice(present, 1000, replace=False))
    kept = np.setdiff1d(np.arange(Y.shape[1]), chosen)
    rest = Y[:, kept].tocsr()
    has = np.diff(rest.indptr) > 0
    return (
        tokens[has],
        rest[has],
        Y_other[:, kept].tocsr(),
        labels[kept],
        labels[chosen],
        Y_other[:, chosen].tocsr(),
    )


def unseen(
    model: Any, answers: list[str], other: Any, Y: Any, new: Any, new_Y: Any
) -> list[dict[str, Any]]:
    """Return recall of new labels among all, and what they cost the others."""
    before = {a: precisions(with_answer(model, a), other, Y) for a in answers}
    model.add_labels(label_texts=new)
    truth = sp.hstack([sp.csr_matrix(Y.shape, dtype=np.float32), new_Y]).tocsr()
    has = np.diff(truth.indptr) > 0
    records = []
    for answer in before:
        for margin in MARGINS:
            with_answer(model.set_params(new_label_margin=margin), answer)
            top = model.predict_topk(other[has], k=10)
            found = {
                f"recall@{k}": round(100 * float(lt.metrics.recall_at_k(truth[has], top, k=k)), 1)
                for k in (5, 10)
            }
            after = precisions(model, other, Y)
            lost = [round(b - a, 2) for a, b in zip(after, before[answer], strict=True)]
            records.append({"answer": f"{answer}, margin {margin}", **found, "lost": lost})
    return records


def with_answer(model: Any, answer: str) -> Any:
    if model.has_table:
        model.answer_, model.share_ = ANSWERS[answer]
    return model


def precisions(model: Any, other: Any, Y: Any) -> list[float]:
    top = model.predict_topk(other, k=5)
    wide = sp.csr_matrix((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], model.n_labels_))
    return [100 * float(lt.metrics.precision_at_k(wide, top, k=k)) for k in (1, 3, 5)]


def table(journal: Path) -> None:
    """Print the mean over seeds of every setting."""
    kept = Journal(journal)
    print(
        "| data | setting | answer | seeds | P@1/3/5 | PSP@1/3/5 | macro-F1@5 | labels found | s |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    for key, runs in sorted(kept.groups(("data", "setting", "answer"), "P").items()):
        cells = [*key, str(len(runs)), means(runs, "P"), means(runs, "PSP")]
        cells += [means(runs, "macro-F1@5", 2), means(runs, "found", 0), means(runs, "seconds", 0)]
        print(f"| {' | '.join(cells)} |")
    print("\n| data | setting | answer | seeds | recall@5 | recall@10 | points lost at 1/3/5 |")
    print("|---|---|---|---:|---:|---:|---:|")
    for key, runs in sorted(kept.groups(("data", "setting", "answer"), "lost").items()):
        cells = [*key, str(len(runs)), means(runs, "recall@5"), means(runs, "recall@10")]
        print(f"| {' | '.join(cells)} | {means(runs, 'lost', 2)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="average")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--journal", type=Path, default=Path("label-text-runs.jsonl"))
    parser.add_argument("--data", nargs="*", default=["TIB-SID-en", "DebDeps-src"])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--set", dest="settings", default="")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--print", dest="only_print", action="store_true")
    options = parser.parse_args()
    if options.only_print:
        table(options.journal)
        return
    journal = Journal(options.journal)
    for kind in options.kinds:
        for name in options.data:
            for seed in options.seeds:
                setting = " ".join(
                    filter(None, ["held-out" * options.held_out, kind, options.settings])
                )
                about = {"data": name, "setting": setting, "seed": seed}
                if journal.has(about):
                    continue
                params = {"encoder": options.encoder, "random_state": seed}
                params |= settings_of(options.settings)
                first = seed == options.seeds[0]
                for found in run(kind, name, options.rows, params, options.held_out, first):
                    journal.write({**about, **found})


if __name__ == "__main__":
    main()
