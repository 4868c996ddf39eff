"""Longtail's linear models and their peers on the same rows: time, memory, size, quality.

    python benchmarks/linear/peers.py setup                     once
    LONGTAIL_DATA=FOLDER python benchmarks/linear/compare.py    measures, then prints the table

FOLDER holds the data sets, one folder each. Every measurement is a process of its own; systems take
turns within a repetition, so that a slow quarter of an hour hits all of them. One line of JSON per
measurement goes to ``results/``; ``table.py`` prints the table again, from as many files as it is
given. Choose with ``--data`` and ``--systems``; ``--all`` runs what is left out for its length.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from data_sets import prepare
from peers import interpreter, peers_folder
from systems import DATA_SETS, SYSTEMS, System
from table import print_table

import longtail as lt

HERE = Path(__file__).resolve().parent
K = 5


def run_phase(system: System, job: dict[str, Any], folder: Path, time_limit: float) -> Any:
    """Runs the worker in the system's environment; returns its result, or raises RuntimeError."""
    job_file, result_file = folder / "job.json", folder / "result.json"
    result_file.unlink(missing_ok=True)
    job_file.write_text(json.dumps({**job, "result": str(result_file)}))
    ours = system.adapter == "longtail"
    python = sys.executable if ours else str(interpreter(system.adapter))
    environment = {**os.environ, **system.environment}
    for variable in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON"):
        environment[f"{variable}_NUM_THREADS"] = str(job["n_threads"])
    if not ours:
        environment.pop("PYTHONPATH", None)
    log = folder / "log.txt"
    with open(log, "wb") as output:
        try:
            done = subprocess.run(
                [python, str(HERE / "worker.py"), str(job_file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                timeout=time_limit,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{job['phase']} took longer than {time_limit:.0f} s") from None
    if done.returncode or not result_file.exists():
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"]
        raise RuntimeError(f"{job['phase']} ended with code {done.returncode}: {last[0]}")
    return json.loads(result_file.read_text())


def measure(system: System, data: Path, predictions: Path, args: argparse.Namespace) -> Any:
    """Trains, saves, loads and asks one system; returns what the worker wrote down."""
    with tempfile.TemporaryDirectory(prefix="longtail-benchmark-") as name:
        folder = Path(name)
        job = {
            "adapter": system.adapter,
            "settings": dict(system.settings),
            "data": str(data),
            "model": str(folder / "model"),
            "predictions": str(predictions),
            "n_threads": args.threads,
            "k": K,
            "n_single": args.single,
            "single_seconds": args.single_seconds,
        }
        trained = run_phase(system, {**job, "phase": "train"}, folder, args.time_limit)
        asked = run_phase(system, {**job, "phase": "predict"}, folder, args.time_limit)
    return {**trained, **asked}


def quality(predictions: Path, data: Path) -> dict[str, float]:
    """Percentages of one evaluator, for every system the same."""
    Y, Y_train = (sp.load_npz(data / f"{name}_Y.npz") for name in ("test", "train"))
    labels = np.load(predictions)
    ranks = np.broadcast_to(-np.arange(labels.shape[1], dtype=np.float32), labels.shape)
    top = lt.TopK(labels, np.where(labels < 0, -np.inf, ranks), n_labels=Y.shape[1])
    propensity = lt.JainPropensity(a=0.55, b=1.5).fit(Y_train)
    values = {f"P@{k}": lt.metrics.precision_at_k(Y, top, k=k) for k in (1, 3, 5)}
    for k in (1, 3, 5):
        values[f"PSP@{k}"] = lt.metrics.ps_precision_at_k(Y, top, propensity, k=k)
    values["nDCG@5"] = lt.metrics.ndcg_at_k(Y, top, k=5)
    return {name: 100 * float(value) for name, value in values.items()}


def machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA_SETS, default=DATA_SETS)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--source", type=Path, default=os.environ.get("LONGTAIL_DATA"))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--single", type=int, default=1000, help="queries asked one by one")
    parser.add_argument("--single-seconds", type=float, default=30.0, help="at most so long")
    parser.add_argument("--time-limit", type=float, default=7200.0, help="seconds of a phase")
    parser.add_argument("--all", action="store_true", help="also what systems.py would skip")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    args = parser.parse_args()
    if args.source is None:
        parser.error("say where the data sets are: --source FOLDER, or LONGTAIL_DATA")
    return args


def record(
    name: str, data: str, folder: Path, predictions: Path, args: argparse.Namespace
) -> dict[str, Any]:
    """One system on one data set: its measurements, or why there are none."""
    system = SYSTEMS[name]
    if data in system.skip and not args.all:
        return {"skipped": system.skip[data]}
    start = time.perf_counter()
    try:
        found: dict[str, Any] = measure(system, folder, predictions, args)
        found.update(quality(predictions, folder))
    except (RuntimeError, FileNotFoundError) as error:
        found = {"failed": str(error)}
    seconds = time.perf_counter() - start
    print(f"{data}, {name}: {_brief(found)} ({seconds:.0f} s)", file=sys.stderr)
    return found


def main() -> int:
    args = parse()
    run = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S")
    file = args.results / f"{run}.jsonl"
    (args.results / "predictions").mkdir(parents=True, exist_ok=True)
    folders = {data: prepare(args.source / data, peers_folder() / "data") for data in args.data}
    facts = {data: json.loads((folders[data] / "facts.json").read_text()) for data in args.data}
    failures = 0
    for repetition, data, name in product(range(args.repetitions), args.data, args.systems):
        predictions = args.results / "predictions" / f"{run}-{data}-{name}.npy"
        found = record(name, data, folders[data], predictions, args)
        failures += "failed" in found
        line = {
            "run": run,
            "data": data,
            "system": name,
            "repetition": repetition,
            **found,
            "settings": dict(SYSTEMS[name].settings),
            "note": SYSTEMS[name].note,
            "threads": args.threads,
            "facts": facts[data],
            "machine": machine(),
            "load": os.getloadavg()[0],
            "command": shlex.join(["python", *sys.argv]),
        }
        with open(file, "a") as lines:
            lines.write(json.dumps(line) + "\n")
    print_table([file])
    return 1 if failures else 0


def _brief(found: dict[str, Any]) -> str:
    if "failed" in found:
        return f"failed: {found['failed']}"
    return (
        f"P@1/3/5 {found['P@1']:.2f}/{found['P@3']:.2f}/{found['P@5']:.2f}, "
        f"train {found['train_cpu_s']:.2f} CPU s, batch {found['batch_cpu_ms']:.3f} ms"
    )


if __name__ == "__main__":
    sys.exit(main())
