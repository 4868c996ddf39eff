"""Trains or asks one system, and writes down what it took. Started by ``compare.py``.

    PEER/bin/python benchmarks/linear/worker.py JOB.json

A job is {"phase": "train" | "predict", "adapter", "settings", "data", "model", "result",
"predictions", "n_threads", "k", "n_single", "single_seconds"}; paths are folders and files. Each
phase runs in a process of its own, so that what one leaves in memory does not help the other.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
from measure import folder_megabytes, peak_megabytes, spent, watch_children

WARM_UP = 32  # queries before the clock starts


def train(adapter: Any, job: dict[str, Any]) -> dict[str, Any]:
    folder = Path(job["model"])
    folder.mkdir(parents=True)
    adapter.read(Path(job["data"]))
    before = peak_megabytes()
    with watch_children() as children, spent() as took:
        adapter.train(folder)
    peak = peak_megabytes()
    adapter.save(folder)
    return {
        "train_s": took.wall,
        "train_cpu_s": took.cpu,
        "train_peak_mb": peak + sum(children.values()),
        "train_data_mb": before,
        "model_mb": folder_megabytes(folder),
    }


def predict(adapter: Any, job: dict[str, Any]) -> dict[str, Any]:
    k = job["k"]
    X = sp.load_npz(Path(job["data"]) / "test_X.npz")
    with spent() as loading:
        adapter.load(Path(job["model"]))

    adapter.predict(adapter.batch(X[:WARM_UP]), k)
    batch = adapter.batch(X)
    with spent() as took:
        answers = adapter.predict(batch, k)
    labels = adapter.labels(answers, k)
    np.save(job["predictions"], labels)

    queries = adapter.queries(X[: job["n_single"]])
    for query in queries[:WARM_UP]:
        adapter.predict_one(query, k)
    times, singles = [], []
    deadline = time.perf_counter() + job["single_seconds"]
    with spent() as single:
        for query in queries:
            start = time.perf_counter()
            answer = adapter.predict_one(query, k)
            end = time.perf_counter()
            times.append(end - start)
            singles.append(answer)
            if end > deadline:
                break
    alone = np.vstack([adapter.labels(answer, k) for answer in singles])
    per_query = 1000 / X.shape[0]
    return {
        "load_ms": 1000 * loading.wall,
        "batch_ms": took.wall * per_query,
        "batch_cpu_ms": took.cpu * per_query,
        "single_p50_ms": 1000 * float(np.percentile(times, 50)),
        "single_p99_ms": 1000 * float(np.percentile(times, 99)),
        "single_cpu_ms": 1000 * single.cpu / len(times),
        "single_queries": len(times),
        # Ties and, for some systems, the order of sums may differ; a lower value would mean that
        # the two paths do not answer the same question.
        "single_agrees": float((alone == labels[: len(alone)]).all(axis=1).mean()),
        "predict_peak_mb": peak_megabytes(),
    }


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    module = importlib.import_module(f"adapters.{job['adapter']}")
    adapter = module.Adapter(job["settings"], job["n_threads"])
    result = {"train": train, "predict": predict}[job["phase"]](adapter, job)
    try:
        version = importlib.metadata.version(module.PACKAGE)
    except importlib.metadata.PackageNotFoundError:  # used from its sources
        version = importlib.import_module(module.PACKAGE).__version__
    result["versions"] = {
        module.PACKAGE: version,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
    }
    Path(job["result"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
