"""Fewer outputs than labels: what do MACH and DECLARE cost, and what do they save?

    python benchmarks/coded/tables.py run [--data Bibtex Delicious CiteULike-t TIB-SID-en]
                [--seeds 0 1 2] [--kinds declare pruned network …] [--device cuda] [--workers 1]
    python benchmarks/coded/tables.py report [--plot docs/_static/coded-convergence.svg]

``run`` trains what is missing, with the settings that ``tune.py`` has chosen on held-out training
rows, and writes one file per data set, kind of model and seed below ``results/coded/tables``, so
that it can be stopped and started again; ``report`` prints the tables and draws P@1 of seed 0
against training time. ``training.py`` tells what each kind is. Several workers slow each other
down, so the time in the tables is the shortest of the seeds: train one with ``--workers 1``. MACH's
is that of one repetition (kind ``mach-one``) times R.

The networks need torch; the linear kinds do not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from rows import NAMES, load
from training import Training

import longtail as lt

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "coded" / "tables"
KINDS = (
    "network",
    "pruned",
    "declare",
    "declare-unit",
    "mach",
    "one-vs-all",
    "declare-linear",
    "declare-linear-unit",
    "declare-neighbors",
    "declare-neighbors-unit",
    "mach-linear",
)
ROWS = [
    ("uncompressed network", "network", ""),
    ("pruned network", "pruned", ""),
    ("DECLARE, inner products (the paper)", "declare", "inner"),
    ("DECLARE, cosine", "declare", "cosine"),
    ("DECLARE, through V", "declare", "labels"),
    ("DECLARE, unit targets, inner products", "declare-unit", "inner"),
    ("DECLARE, unit targets, cosine", "declare-unit", "cosine"),
    ("DECLARE, true codes, inner products (ceiling)", "declare", "oracle inner"),
    ("MACH, logits", "mach", "logits"),
    ("MACH, mean of probabilities", "mach", "mean"),
    ("MACH, minimum", "mach", "min"),
    ("MACH, median", "mach", "median"),
    ("one-vs-all, linear", "one-vs-all", ""),
    ("DECLARE, linear, inner products", "declare-linear", "inner"),
    ("DECLARE, linear, cosine", "declare-linear", "cosine"),
    ("DECLARE, linear, through V", "declare-linear", "labels"),
    ("DECLARE, linear, unit targets, inner products", "declare-linear-unit", "inner"),
    ("DECLARE, linear, unit targets, cosine", "declare-linear-unit", "cosine"),
    ("DECLARE, linear, neighbour code, inner products", "declare-neighbors", "inner"),
    ("DECLARE, linear, neighbour code, cosine", "declare-neighbors", "cosine"),
    ("DECLARE, linear, neighbour code, through V", "declare-neighbors", "labels"),
    ("DECLARE, linear, neighbour code, unit, inner products", "declare-neighbors-unit", "inner"),
    ("DECLARE, linear, neighbour code, unit, cosine", "declare-neighbors-unit", "cosine"),
    ("MACH, linear, logits", "mach-linear", "logits"),
]
# Kinds that take over what was chosen for another one.
SAME_SETTING = {"declare-neighbors-unit": "declare-neighbors", "mach-one": "mach"}
# Where a kind is timed, if not by itself.
TIMED = {"mach": "mach-one"}


def setting_of(name: str, kind: str) -> dict[str, Any]:
    chosen = json.loads((HERE / "chosen.json").read_text())
    return chosen[name].get(SAME_SETTING.get(kind, kind), {})  # type: ignore[no-any-return]


def cell(name: str, kind: str, seed: int, args: argparse.Namespace) -> str:
    path = RESULTS / f"{name}.{kind}.{seed}.json"
    if path.exists():
        return ""
    rows, setting = load(name), setting_of(name, kind)
    work = Training(
        name,
        rows,
        seed=seed,
        device=args.device,
        n_jobs=args.n_jobs,
        curve=seed == 0,
        at_once=args.at_once,
    )
    if args.device != "cpu":
        work.warm_up("mach-one" if kind == "mach" else kind, setting)
    found = work.run(kind, setting)
    found["machine"] = f"{machine(args.device)}, {lt.native_info()}"
    found.update(command=args.command_line, setting=setting)
    path.write_text(json.dumps(found))
    P = "/".join(f"{p:.2f}" for p in found[""]["P"])
    return f"{name} {kind} seed {seed}: {P}, {found['seconds']:.1f} s"


def machine(device: str) -> str:
    if device == "cpu":
        return platform.processor() or platform.machine()
    import torch

    return str(torch.cuda.get_device_name())


def run(args: argparse.Namespace) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    args.command_line = " ".join(sys.argv)
    del args.function
    tasks = [
        (name, kind, seed, args)
        for seed in args.seeds
        for name in reversed(args.data)
        for kind in args.kinds
    ]
    with ProcessPoolExecutor(args.workers, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(cell, *task) for task in tasks]):
            if done.result():
                print(done.result(), flush=True)


def cells(name: str, kind: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"{name}.{kind}.*.json"))]


def mean(found: list[dict[str, Any]], answer: str, measure: str, spread: bool = False) -> str:
    values = np.array([np.atleast_1d(cell[answer][measure]) for cell in found])
    out = " / ".join(f"{v:.2f}" for v in values.mean(axis=0))
    return out + (f" ± {values[:, 0].std(ddof=1):.2f}" if spread and len(found) > 1 else "")


def report(args: argparse.Namespace) -> None:
    heads = ("P@1 / 3 / 5 (± of P@1)", "PSP@1 / 3 / 5", "macro-F1@5", "rare recall@5")
    for name in args.data:
        print(f"\n### {name}\n")
        print("| model | " + " | ".join(heads) + " | outputs | parameters | seconds | seeds |")
        print("|---|" + "---:|" * (len(heads) + 4))
        for title, kind, answer in ROWS:
            found = cells(name, kind)
            if found:
                parameters = np.mean([cell["parameters"] for cell in found]) / 1e6
                timed = cells(name, TIMED.get(kind, kind)) or found
                seconds = np.min([cell["seconds"] for cell in timed])
                quality = " | ".join(
                    mean(found, answer, measure, spread=measure == "P")
                    for measure in ("P", "PSP", "macro", "rare")
                )
                print(
                    f"| {title} | {quality} | {found[0]['outputs']:,} | "
                    f"{parameters:.2f} M | {seconds:.1f} | {len(found)} |"
                )
    if args.plot:
        plot(args.data, args.plot)


def plot(names: list[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    shown = [name for name in names if cells(name, "declare") and cells(name, "network")]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.4 * len(shown), 3.2), squeeze=False)
    styles = (
        ("network", "uncompressed"),
        ("pruned", "pruned"),
        ("declare", "DECLARE"),
        ("declare-unit", "DECLARE, unit targets"),
    )
    for axis, name in zip(axes[0], shown, strict=True):
        for color, (kind, title) in enumerate(styles):
            drawn = [cell for cell in cells(name, kind) if cell["curve"]]
            fastest = min(drawn, key=lambda cell: cell["seconds"], default=None)
            if fastest:
                curve = np.array(fastest["curve"])
                axis.plot(*curve.T, color=f"C{color}", label=title, lw=1.2, alpha=0.8)
        axis.set(title=name, xlabel="training seconds", xscale="log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("P@1 on the test rows")
    axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("run", run), ("report", report)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--data", nargs="+", default=list(NAMES))
        command.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
        command.add_argument("--kinds", nargs="+", default=list(KINDS))
        command.add_argument("--device", default="cpu")
        command.add_argument("--workers", type=int, default=1)
        command.add_argument("--at-once", type=int, default=1, help="repetitions of MACH")
        command.add_argument("--n-jobs", type=int, default=2)
        command.add_argument("--plot", type=Path)
    args = parser.parse_args(sys.argv[1:] or ["report"])
    args.function(args)


if __name__ == "__main__":
    main()
