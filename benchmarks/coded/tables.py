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
    ("DECLARE, inner (the paper)", "declare", "inner"),
    ("DECLARE, cosine", "declare", "cosine"),
    ("DECLARE, V", "declare", "labels"),
    ("DECLARE, unit, inner", "declare-unit", "inner"),
    ("DECLARE, unit, cosine", "declare-unit", "cosine"),
    ("DECLARE, inner, true codes", "declare", "oracle inner"),
    ("MACH, logits", "mach", "logits"),
    ("MACH, mean", "mach", "mean"),
    ("MACH, minimum", "mach", "min"),
    ("MACH, median", "mach", "median"),
    ("one-vs-all, linear", "one-vs-all", ""),
    ("DECLARE, linear, inner", "declare-linear", "inner"),
    ("DECLARE, linear, cosine", "declare-linear", "cosine"),
    ("DECLARE, linear, V", "declare-linear", "labels"),
    ("DECLARE, linear, unit, inner", "declare-linear-unit", "inner"),
    ("DECLARE, linear, unit, cosine", "declare-linear-unit", "cosine"),
    ("DECLARE, neighbours, inner", "declare-neighbors", "inner"),
    ("DECLARE, neighbours, cosine", "declare-neighbors", "cosine"),
    ("DECLARE, neighbours, V", "declare-neighbors", "labels"),
    ("DECLARE, neighbours, unit, inner", "declare-neighbors-unit", "inner"),
    ("DECLARE, neighbours, unit, cosine", "declare-neighbors-unit", "cosine"),
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


def mean(found: list[dict[str, Any]], answer: str, measure: str, place: int = 0) -> float:
    return float(np.mean([np.atleast_1d(cell[answer][measure])[place] for cell in found]))


def spread(found: list[dict[str, Any]], answer: str) -> str:
    """Of P@1 over the seeds."""
    values = [cell[answer]["P"][0] for cell in found]
    return f"\u00a0±\u00a0{np.std(values, ddof=1):.2f}" if len(found) > 1 else ""


def report(args: argparse.Namespace) -> None:
    shown = (("P", 0), ("P", 1), ("P", 2), ("PSP", 0), ("PSP", 2), ("macro", 0), ("rare", 0))
    heads = "P@1 | P@3 | P@5 | PSP@1 | PSP@5 | macro F1 | rare | outputs | weights | s"
    for name in args.data:
        print(f"\n### {name}\n\n| model | {heads} |\n|---|" + "---:|" * (len(shown) + 3))
        for title, kind, answer in ROWS:
            found = cells(name, kind)
            if not found:
                continue
            weights = np.mean([cell["parameters"] for cell in found]) / 1e6
            timed = cells(name, TIMED.get(kind, kind)) or found
            seconds = np.min([cell["seconds"] for cell in timed])
            values = [f"{mean(found, answer, *which):.1f}" for which in shown]
            values[0] = f"{mean(found, answer, 'P'):.2f}" + spread(found, answer)
            sizes = f"{found[0]['outputs']:,} | {weights:.2f}\u00a0M | {seconds:.1f}"
            seeds = "" if len(found) == 3 else f" (seeds: {len(found)})"
            print(f"| {title}{seeds} | {' | '.join(values)} | {sizes} |")
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
