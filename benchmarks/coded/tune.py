"""Settings of the coded models and their baselines, chosen on held-out training rows.

    python benchmarks/coded/tune.py [--data Bibtex Delicious CiteULike-t TIB-SID-en]
                                    [--kinds network pruned declare mach …] [--device cuda]
                                    [--workers 12] [--settings 16] [--rounds 1]

For each data set and kind of model, tries settings drawn at random from ``SPACE`` (the same for
every data set), with what was chosen before, and then, ``--rounds`` times, the neighbours of the
best so far (one number doubled or halved). Each is trained on four fifths of the training rows and
judged by the mean of P@1, P@3 and P@5 on the others, over ``SPLITS`` splits; for DECLARE through
the paper's recovery by inner products. No test row is looked at. What won goes to ``chosen.json``
beside this file, from where ``tables.py`` takes it; all trials go to ``results/coded/tune``, so
that this can be stopped and started again (``--settings 0`` goes on from the best so far, and with
``--rounds 0`` only chooses).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from rows import NAMES, held_out
from training import Training

HERE = Path(__file__).resolve().parent
CHOSEN = HERE / "chosen.json"
TRIALS = HERE.parent / "results" / "coded" / "tune"

_CLASSIFIER: dict[str, list[Any]] = {
    "learning_rate": [1e-3, 2e-3, 5e-3, 1e-2],
    "dropout": [0.2, 0.5, 0.7],
    "weight_decay": [0.0, 0.1, 0.5],
    "epochs": [5, 10, 20, 40],
}
_REGRESSOR: dict[str, list[Any]] = {
    "loss": ["squared", "length"],
    "batch_size": [128, 256],
    "learning_rate": [1e-3, 2e-3, 5e-3, 1e-2],
    "dropout": [0.0, 0.2, 0.5],
    "weight_decay": [0.1, 0.3, 1.0, 3.0],
    "epochs": [5, 10, 20, 40],
}
SPACE: dict[str, dict[str, list[Any]]] = {
    "network": {"loss": ["sigmoid", "softmax"], **_CLASSIFIER},
    "pruned": {"loss": ["sigmoid", "softmax"], **_CLASSIFIER},
    "declare": _REGRESSOR,
    "declare-unit": _REGRESSOR,
    "mach": {"loss": ["sigmoid", "softmax"], **_CLASSIFIER},
    "declare-linear": {"l2": [0.1, 0.3, 1.0, 3.0]},
    "declare-linear-unit": {"l2": [0.1, 0.3, 1.0, 3.0]},
    "declare-neighbors": {"l2": [0.1, 0.3, 1.0, 3.0]},
    "one-vs-all": {"C": [0.3, 1.0, 3.0]},
    "mach-linear": {"C": [0.3, 1.0, 3.0]},
}
_CODES: dict[Any, Any] = {}  # of this process: the SVDs of splits
SPLITS = {"Bibtex": 3, "Delicious": 1, "CiteULike-t": 1, "TIB-SID-en": 1}


def drawn(kind: str, count: int) -> list[dict[str, Any]]:
    """Different settings, the same on every machine; all of them where there are no more."""
    space = SPACE[kind]
    total = int(np.prod([len(values) for values in space.values()]))
    out = []
    for number in np.random.default_rng(20).permutation(total)[:count]:
        setting = {}
        for name, values in space.items():
            number, place = divmod(int(number), len(values))
            setting[name] = values[place]
        out.append(setting)
    return out


def neighbors(kind: str, setting: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings that differ from this one in one number."""
    out = []
    for name, value in setting.items():
        if name == "loss":
            near = [loss for loss in SPACE[kind]["loss"] if loss != value]
        elif name == "dropout":
            near = [round(value + step, 2) for step in (-0.15, 0.15) if 0 <= value + step < 0.9]
        elif name in ("epochs", "batch_size"):
            near = [value // 2, 2 * value]
        else:
            near = [float(f"{value * factor:.3g}") for factor in (0.5, 2)] if value else [0.05]
        out += [{**setting, name: other} for other in near]
    return out


def trial(name: str, kind: str, setting: dict[str, Any], device: str, n_jobs: int) -> None:
    path = TRIALS / f"{name}.{kind}.{'-'.join(str(v) for v in setting.values())}.json"
    if path.exists():
        return
    found = []
    for split in range(SPLITS[name]):
        rows = held_out(name, split)
        work = Training(name, rows, seed=split, device=device, n_jobs=n_jobs, codes=_CODES)
        found.append(work.run(kind, setting))
    values = [cell[""]["P"] for cell in found]
    out = {
        "name": name,
        "kind": kind,
        "setting": setting,
        "value": float(np.mean(values)),
        "P": np.mean(values, axis=0).tolist(),
        "seconds": float(np.mean([cell["seconds"] for cell in found])),
    }
    path.write_text(json.dumps(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(NAMES))
    parser.add_argument("--kinds", nargs="+", default=list(SPACE))
    parser.add_argument("--settings", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--n-jobs", type=int, default=2)
    args = parser.parse_args()
    TRIALS.mkdir(parents=True, exist_ok=True)
    pairs = [(name, kind) for name in reversed(args.data) for kind in args.kinds]
    with ProcessPoolExecutor(args.workers, multiprocessing.get_context("spawn")) as pool:
        for i in range(args.rounds + 1):
            best = choose()
            tasks = []
            for name, kind in pairs:
                before = [best[name][kind]] if kind in best.get(name, {}) else []
                settings = before + drawn(kind, args.settings) if args.settings else []
                if i:
                    settings = neighbors(kind, before[0]) if before else []
                tasks += [(name, kind, setting, args.device, args.n_jobs) for setting in settings]
            for done in as_completed([pool.submit(trial, *task) for task in tasks]):
                done.result()
    for name, kinds in choose().items():
        for kind, setting in kinds.items():
            print(name, kind, setting)


def choose() -> dict[str, dict[str, Any]]:
    """The best of all trials so far, by data set and kind; also written down. What was chosen
    before stays where there are no trials.
    """
    best: dict[tuple[str, str], Any] = {}
    for path in sorted(TRIALS.glob("*.json")):
        found = json.loads(path.read_text())
        key = (found["name"], found["kind"])
        if key not in best or found["value"] > best[key]["value"]:
            best[key] = found
    chosen: dict[str, Any] = json.loads(CHOSEN.read_text()) if CHOSEN.exists() else {}
    for (name, kind), found in best.items():
        chosen.setdefault(name, {})[kind] = found["setting"]
    CHOSEN.write_text(json.dumps(chosen, indent=1, sort_keys=True) + "\n")
    return chosen


if __name__ == "__main__":
    main()
