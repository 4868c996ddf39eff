"""XRTransformer beside XRLinear, the frozen encoder and TextNetwork, and with parts left out.

Rows are prepared by ``rows.py``, once with the encoder and once with ``--tfidf``. Every finished
run is a line of the journal; one that is in it is not made again:

    python benchmarks/text/xr_transformer.py --encoder FOLDER --rows prepared/ --journal runs.jsonl
    python benchmarks/text/xr_transformer.py --journal runs.jsonl --print

The first four kinds and "xr-transformer" are what one would choose between; the others leave a part
of it out, as tables 5 and 6 of the paper do. Those that differ in the ranker alone use the encoder
that "xr-transformer" trained with the same seed, through its checkpoint; their seconds are those
of the ranker. ``--dev`` measures on dev rows (or a held-out tenth of the training rows), for
choosing settings; ``--set steps=2000,learning_rate=2e-4`` overrides parameters of XRTransformer.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import rows as prepared
from compare import measured, settings_of
from journal import Journal, means

import longtail as lt

# What differs from the whole method; None: another model.
KINDS: dict[str, dict[str, Any] | None] = {
    "xr-linear": None,
    "text-network": None,
    "frozen": {"steps": 0},
    "xr-transformer": {},
    "vectors-only": {"features": "vectors"},
    "first-tree": {"refine": False},
    "no-cost-weights": {"count_weights": False, "cost_weights": None},
    "no-bootstrap": {"bootstrap": False},
    "one-resolution": {"resolutions": "last"},
}
SAME_ENCODER = ("xr-transformer", "vectors-only", "first-tree")  # differ after the last level only


def split(name: str, folder: Path, dev: bool) -> tuple[Any, Any, Any, Any]:
    """Rows to learn from with their labels, and rows to measure on with theirs."""
    rows = prepared.load_paired(name, folder)
    if dev:
        return rows.held_out()
    return rows.tokens["train"], rows.Y["train"], rows.tokens["test"], rows.Y["test"]


def run(kind: str, data: Any, params: dict[str, Any], changed: Any, folder: Path) -> dict[str, Any]:
    """Train and measure one model; ``params``: encoder and seed."""
    rows, Y, others, truth = data
    about: dict[str, Any] = {}
    began, cpu = time.perf_counter(), time.process_time()
    if kind == "xr-linear":
        model: Any = lt.XRLinear(random_state=params["random_state"]).fit(rows.X, Y)
        top = model.predict_topk(others.X, k=5)
    elif kind == "text-network":
        model = lt.TextNetwork(**params).fit(rows.tokens, Y)
        top = model.predict_topk(others.tokens, k=5)
    else:
        kept = folder / f"{params['random_state']}" if kind in SAME_ENCODER else None
        about["reused"] = kept is not None and kept.exists()
        model = lt.XRTransformer(**{**params, **changed, **(KINDS[kind] or {})})
        model.fit(rows, Y, checkpoint=kept)
        top = model.predict_topk(others, k=5)
        about["levels"] = [
            {
                key: round(record[key], 4)
                for key in ("nodes", "steps", "seconds", "first_loss", "loss")
            }
            for record in model.history_
        ]
        about["tuning"] = round(sum(record["seconds"] for record in model.history_), 1)
    about["seconds"] = round(time.perf_counter() - began, 1)
    about["cpu"] = round(time.process_time() - cpu, 1)
    return {**measured(Y, truth, top), **about}


def table(journal: Journal) -> None:
    """Print the mean over seeds of every kind."""
    print("| data | model | seeds | P@1/3/5 | PSP@1/3/5 | macro-F1@5 | labels found | seconds |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    groups = journal.groups(["data", "kind", "setting"], having="P")
    order = list(KINDS)
    for (data, _, setting), found in sorted(
        groups.items(), key=lambda item: (item[0][0], order.index(item[0][1]), item[0][2])
    ):
        more = "+" if any(record.get("reused") for record in found) else ""
        print(
            f"| {data} | {setting} | {len(found)} | {means(found, 'P')} | {means(found, 'PSP')} "
            f"| {means(found, 'macro-F1@5', 2)} | {means(found, 'found', 0)} "
            f"| {more}{means(found, 'seconds', 0)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="average")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--journal", type=Path, default=Path("xr-transformer-runs.jsonl"))
    parser.add_argument("--data", nargs="*", default=["TIB-SID-en", "DebDeps-src"])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument(
        "--all-seeds",
        nargs="*",
        default=["xr-transformer"],
        choices=list(KINDS),
        help="kinds that are run with every seed; the others with the first",
    )
    parser.add_argument("--set", dest="settings", nargs="*", default=[""])
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--print", dest="only_print", action="store_true")
    options = parser.parse_args()
    journal = Journal(options.journal)
    if options.only_print:
        table(journal)
        return
    print(f"{platform.platform()}, {lt.native_info()}, {' '.join(sys.argv)}", flush=True)
    for name in options.data:
        data = split(name, options.rows, options.dev)
        for text in options.settings:
            with tempfile.TemporaryDirectory() as folder:
                for kind in options.kinds:
                    for seed in options.seeds if kind in options.all_seeds else options.seeds[:1]:
                        setting = " ".join(filter(None, ["dev" * options.dev, kind, text]))
                        about = {"data": name, "setting": setting, "kind": kind, "seed": seed}
                        if journal.has(about):
                            continue
                        params = {"encoder": options.encoder, "random_state": seed}
                        found = run(kind, data, params, settings_of(text), Path(folder))
                        journal.write({**about, **found})


if __name__ == "__main__":
    main()
