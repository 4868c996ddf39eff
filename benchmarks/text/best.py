"""Every kind of model fused (``quality="best"``), its parts alone, and the whole without each part.

Rows are prepared by ``rows.py``, once with the encoder and ``--label-texts``, once with
``--tfidf``; with ``--no-encoder``, the variant without encoder and torch, texts are read from
``LONGTAIL_DATA`` and no rows need be prepared. Every finished run is a line of the journal; one
that is in it is not made again:

    python benchmarks/text/rows.py --encoder FOLDER --output prepared/ --label-texts
    python benchmarks/text/rows.py --output prepared/ --tfidf
    python benchmarks/text/best.py --encoder FOLDER --rows prepared/ --journal best.jsonl
    python benchmarks/text/best.py --no-encoder --journal best.jsonl
    python benchmarks/text/best.py --journal best.jsonl --print

The rule is learned on the dev rows of TIB-SID-en, and on a held-out tenth of the training rows of
DebDeps-src, whose parts are then fitted again on all of them. ``--dev`` is for choosing settings:
it learns the rule on one half of the dev rows (or of a held-out tenth) and measures on the other.
Beside them stands "three trees", what ``quality="fast"`` chooses, as they come; the journal also
has the time with the second training that makes probabilities of their scores. ``--keep FOLDER``
writes the 40 best labels of every part and of the whole for the test rows, those of every part for
the rows that the rule was learned on, and the true labels: for ``head_to_tail.py`` to draw, and to
learn the rule anew without training anything (``--fuse FOLDER``):

    python benchmarks/text/best.py --fuse FOLDER --seeds 0 --journal fused.jsonl
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parent))

import rows as prepared
from compare import measured
from journal import Journal, means

import longtail as lt
from longtail.data.paired_rows import PairedRows
from longtail.ensemble.learned_fusion import Fusion
from longtail.ensemble.learning import Learned
from longtail.tagger.best import best_model, best_parts
from longtail.tagger.named_models import make_model

KEPT = 40  # answers of every part that the rule is learned from


class Clock:
    """Seconds on the wall and of all processors since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def told(self) -> dict[str, float]:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return {"seconds": round(wall, 1), "cpu": round(cpu, 1)}


def read(name: str, options: argparse.Namespace) -> prepared.Rows:
    """Return rows as tokens and features, or, without an encoder, as features alone."""
    if not options.no_encoder:
        rows = prepared.load_paired(name, options.rows)
        if not isinstance(rows.labels, PairedRows):
            raise SystemExit(f"{options.rows} lacks label texts of {name}: prepare the rows anew")
        return rows
    rows = prepared.read_texts(name)
    vectorizer = lt.Tfidf().fit(rows.tokens["train"])
    features = {split: vectorizer.transform(texts) for split, texts in rows.tokens.items()}
    return prepared.Rows(features, rows.Y, vectorizer.transform(rows.labels))


def split(rows: prepared.Rows, dev: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Return training rows and labels, validation rows or None, and rows to measure on."""
    train, Y = rows.tokens["train"], rows.Y["train"]
    if not dev:
        valid = (rows.tokens["dev"], rows.Y["dev"]) if "dev" in rows.tokens else None
        return train, Y, valid, rows.tokens["test"], rows.Y["test"]
    order = np.random.default_rng([0, 20]).permutation(Y.shape[0])
    if "dev" in rows.tokens:
        held, Y_held = rows.tokens["dev"], rows.Y["dev"]
        order = np.random.default_rng([0, 20]).permutation(Y_held.shape[0])
    else:
        n = len(order) // 10
        held, Y_held = train[np.sort(order[:n])], Y[np.sort(order[:n])]
        train, Y = train[np.sort(order[n:])], Y[np.sort(order[n:])]
        order = np.random.default_rng([1, 20]).permutation(n)
    half = len(order) // 2
    a, b = np.sort(order[:half]), np.sort(order[half:])
    return train, Y, (held[a], Y_held[a]), held[b], Y_held[b]


def run(rows: prepared.Rows, seed: int, options: argparse.Namespace, name: str) -> list[Any]:
    """Train and measure once; return one record per table row."""
    train, Y, valid, test, truth = split(rows, options.dev)
    features = train if options.no_encoder else train.X
    asked = test if options.no_encoder else test.X
    records = []
    clock = Clock()
    trees = make_model("ensemble", seed).fit(features, Y)
    about = clock.told()
    rest = np.random.default_rng(0).permutation(Y.shape[0]) >= Y.shape[0] // 10
    make_model("ensemble", seed).fit(features[rest], Y[rest]).calibrate(features[~rest], Y[~rest])
    about |= {f"{name} with probabilities": value for name, value in clock.told().items()}
    top = trees.predict_topk(asked, k=5)
    records.append({"kind": "beside", "name": "three trees", **measured(Y, truth, top), **about})
    encoder = None if options.no_encoder else options.encoder
    parts = best_parts(
        n_texts=Y.shape[0],
        n_labels=Y.shape[1],
        label_texts=True,
        encoder=encoder,
        device=options.device,
        random_state=seed,
        onnx=False,
    )
    model = best_model(parts, seed)
    clock = Clock()
    folder = None if options.checkpoint is None else options.checkpoint / f"{name}-{seed}"
    model.fit(train, Y, label_texts=rows.labels, validation=valid, checkpoint=folder)
    about = clock.told()
    proba = model.predict_proba_topk(test, k=5)
    about |= {
        "answering": round(clock.told()["seconds"] - about["seconds"], 1),
        "ECE": round(float(lt.metrics.expected_calibration_error(truth, proba, k=5)), 4),
        "ECE@1": round(float(lt.metrics.expected_calibration_error(truth, proba, k=1)), 4),
        "held_out": model.fusion_.held_out,
    }
    records.append({"kind": "whole", "name": "whole", **measured(Y, truth, proba), **about})
    for part, top in model.answers_of_parts(test, k=5).items():
        spent = round(model.part_seconds[part], 1)
        found = {"kind": "part", "name": part, **measured(Y, truth, top), "seconds": spent}
        records.append(found)
    for part, top in model.answers_without_parts(test, k=5).items():
        records.append({"kind": "without", "name": part, **measured(Y, truth, top)})
    if options.keep is not None:
        keep(model, rows, options.keep / f"{name}-{seed}.npz")
    return records


def keep(model: Any, rows: prepared.Rows, path: Path) -> None:
    """Write the answers of every part and of the whole, and what they are measured by."""
    asked, Y, learned = rows.tokens["test"], rows.Y["test"], model.__dict__["_learned"]
    arrays = {"counts": np.bincount(rows.Y["train"].indices, minlength=model.n_labels_)}
    arrays |= {"test.indptr": Y.indptr, "test.indices": Y.indices}
    arrays |= {"held.indptr": learned.Y.indptr, "held.indices": learned.Y.indices}
    tops = model.answers_of_parts(asked, k=KEPT)
    for part, top in {**tops, "whole": model.predict_topk(asked, k=KEPT)}.items():
        arrays[f"test.{part}.ids"], arrays[f"test.{part}.scores"] = top.indices, top.scores
    for part, top in zip(model.part_names, learned.tops, strict=True):
        arrays[f"held.{part}.ids"], arrays[f"held.{part}.scores"] = top.indices, top.scores
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)


def fuse(name: str, path: Path, keep_at: Path | None) -> list[Any]:
    """Learn the rule anew from answers that ``keep`` wrote, and measure; records as in ``run``.

    ``keep_at``: a folder for the same answers with those of the new whole.
    """
    Y = prepared.read_texts(name).Y
    n_labels = Y["train"].shape[1]
    with np.load(path) as file:
        kept = dict(file)
    of_parts = [key for key in kept if key.startswith("held.") and key.endswith(".ids")]
    parts = [key.removeprefix("held.").removesuffix(".ids") for key in of_parts]

    def answers(which: str) -> list[lt.TopK]:
        pairs = [(kept[f"{which}.{p}.ids"], kept[f"{which}.{p}.scores"]) for p in parts]
        return [lt.TopK(ids, scores, n_labels).head(KEPT) for ids, scores in pairs]

    held_ids = kept["held.indices"]
    ones, indptr = np.ones(len(held_ids), np.float32), kept["held.indptr"]
    held = sp.csr_matrix((ones, held_ids, indptr), shape=(len(indptr) - 1, n_labels))
    given, counts, held_out = answers("held"), kept["counts"], "dev" not in Y
    fusion = Fusion.fit(given, held, counts, held_out=held_out)
    learned = Learned(fusion, given, held, counts, held_out)
    tops = answers("test")

    def record(kind: str, title: str, top: lt.TopK) -> dict[str, Any]:
        return {"kind": kind, "name": title, **measured(Y["train"], Y["test"], top)}

    if keep_at is not None:
        top = fusion.top(tops, KEPT)
        kept |= {"test.whole.ids": top.indices, "test.whole.scores": top.scores}
        keep_at.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(keep_at / path.name, **kept)
    whole = fusion.top(tops, 5)
    ece = round(float(lt.metrics.expected_calibration_error(Y["test"], whole, k=5)), 4)
    records = [record("whole", "whole", whole) | {"ECE": ece}]
    records += [record("part", part, top.head(5)) for part, top in zip(parts, tops, strict=True)]
    for i, part in enumerate(parts):
        others = [top for j, top in enumerate(tops) if j != i]
        records.append(record("without", part, learned.without(i, None).top(others, 5)))
    return records


def table(journal: Journal) -> None:
    """Print the mean over seeds: the whole, its parts, and the whole without each of them."""
    print(
        "| data | setting | | seeds | P@1/3/5 | PSP@1/3/5 | macro-F1@5 | found | ECE | seconds "
        "| CPU seconds |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    groups = journal.groups(["data", "setting", "kind", "name"], having="P")
    order = {key: i for i, key in enumerate(groups)}
    for key, found in sorted(groups.items(), key=lambda g: (*g[0][:2], order[g[0]])):
        data, setting, kind, name = key
        called = {"without": f"without {name}", "part": f"{name} alone"}.get(kind, name)
        ece = means(found, "ECE", 4) if "ECE" in found[0] else ""
        seconds, cpu = (
            means(found, name, 0) if name in found[0] else "" for name in ("seconds", "cpu")
        )
        print(
            f"| {data} | {setting} | {called} | {len(found)} | {means(found, 'P')} "
            f"| {means(found, 'PSP')} | {means(found, 'macro-F1@5', 2)} "
            f"| {means(found, 'found', 0)} | {ece} | {seconds} | {cpu} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder")
    parser.add_argument("--no-encoder", action="store_true")
    parser.add_argument("--device")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--journal", type=Path, default=Path("best-runs.jsonl"))
    parser.add_argument("--data", nargs="*", default=["TIB-SID-en", "DebDeps-src"])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for answers of parts")
    parser.add_argument("--fuse", type=Path, help="a folder that --keep wrote")
    parser.add_argument("--checkpoint", type=Path, help="a folder for finished parts of a run")
    parser.add_argument("--print", dest="only_print", action="store_true")
    options = parser.parse_args()
    journal = Journal(options.journal)
    if options.only_print:
        table(journal)
        return
    if options.fuse is None and options.no_encoder == bool(options.encoder):
        parser.error("give --encoder FOLDER and --rows, or --no-encoder")
    print(f"{platform.platform()}, {lt.native_info()}, {' '.join(sys.argv)}", flush=True)
    setting = ("dev " * options.dev) + ("no encoder" if options.no_encoder else "best")
    if options.fuse is not None:
        setting = "kept answers"
    for name in options.data:
        rows = None
        for seed in options.seeds:
            about = {"data": name, "setting": setting, "seed": seed}
            if journal.has(about):
                continue
            if options.fuse is not None:
                for found in fuse(name, options.fuse / f"{name}-{seed}.npz", options.keep):
                    journal.write({**about, **found})
                continue
            rows = read(name, options) if rows is None else rows
            for found in run(rows, seed, options, name):
                journal.write({**about, **found})


if __name__ == "__main__":
    main()
