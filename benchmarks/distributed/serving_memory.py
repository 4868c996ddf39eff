"""Memory of worker processes on one mapped model: proportional set size (PSS) of all together.

    python benchmarks/distributed/serving_memory.py --labels 200000

Trains a tree on made texts (or takes ``--model``), serves it with one worker and with several, asks
every worker often enough to touch its pages, and adds up the PSS of all processes of the service:
pages that are shared count once.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import longtail as lt


def make_model(folder: Path, n_labels: int, seed: int) -> Path:
    data = lt.data.make_longtail(n=n_labels, d=n_labels // 3, L=n_labels, random_state=seed).train
    words = np.array([f"w{i}" for i in range(data.X.shape[1])])
    ends = zip(data.X.indptr, data.X.indptr[1:], strict=False)
    texts = [" ".join(words[data.X.indices[a:b]]) for a, b in ends]
    (folder / "texts.json").write_text(json.dumps(texts[:2000]))
    names = [f"label {i}" for i in range(data.Y.shape[1])]
    tagger = lt.Tagger(model=lt.XRLinear(random_state=seed), calibrate=False)
    tagger.fit(texts, data.Y, label_names=names).save(folder / "model")
    return folder / "model"


def tree_of(parent: int) -> list[int]:
    """The process and all below it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found = [parent]
    for process in found:
        found += [child for child, of in parents.items() if of == process]
    return found


def pss(processes: list[int]) -> int:
    total = 0
    for process in processes:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        total += 1024 * int(re.search(r"^Pss:\s+(\d+) kB", text, re.M)[1])  # type: ignore[index]
    return total


def ask(port: int, texts: list[str], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for start in range(0, len(texts), 100):
            body = json.dumps({"texts": texts[start : start + 100], "k": 5})
            connection.request("POST", "/predict", body, {"content-type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            response.read()
        connection.close()


def wait_for_workers(server: int, port: int, workers: int) -> None:
    """Until as many processes as there are workers have mapped the model and answer."""
    while True:
        time.sleep(0.5)
        busy = [p for p in tree_of(server) if pss([p]) > 30e6]
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200 and len(busy) >= workers:
                time.sleep(3)
                return


def measure(model: Path, texts: list[str], workers: int, seconds: float) -> int:
    command = [sys.executable, "-m", "longtail", "serve", str(model), "--port", "0", "--no-log"]
    process = subprocess.Popen(
        [*command, "--workers", str(workers)], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        port = int(re.search(r":(\d+) \(", process.stderr.readline())[1])  # type: ignore[index]
        wait_for_workers(process.pid, port, workers)
        clients = [
            threading.Thread(target=ask, args=(port, texts, seconds)) for _ in range(2 * workers)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        return pss(tree_of(process.pid))
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a folder made by train, with --texts")
    parser.add_argument("--texts", type=Path, help="a JSON list of texts to ask about")
    parser.add_argument("--labels", type=int, default=200_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or make_model(Path(folder), args.labels, args.seed)
        texts = json.loads((args.texts or Path(folder, "texts.json")).read_text())
        size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
        print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, {sys.argv}")
        print(f"model of {size / 1e6:.0f} MB")
        first = 0
        for workers in args.workers:
            found = measure(model, texts, workers, args.seconds)
            first = first or found
            print(f"{workers} workers: {found / 1e6:.0f} MB, {found / first:.2f} times the first")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
