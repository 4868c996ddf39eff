"""What an engine costs beside one machine: CPU seconds of training and scoring, memory of workers.

    python benchmarks/distributed/bars.py training --engine ray --scale 0.3     # 201,027 labels
    python benchmarks/distributed/bars.py scoring --engine ray --rows 1000000   # none: here alone
    python benchmarks/distributed/bars.py memory --scale 4.5 --memory-limit 4GB  # 3,015,410 labels

CPU seconds are those of this process and of all below it (workers, and the engine's own processes),
with the engine started and warmed before; runs here and there take turns. Every run is a line of
JSON, also in ``--journal``. The data are made like Amazon-670K (``make_longtail``), ``scale`` times
as large.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from serving_memory import make_model, tree_of

import longtail as lt

TICKS = os.sysconf("SC_CLK_TCK")


class CpuSeconds:
    """CPU seconds of this process and of all below it inside the block, looked at once a
    second: engines end workers without telling what they took.
    """

    total = 0.0

    def __enter__(self) -> CpuSeconds:
        self._before, self._last = self._now(), {}
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()
        self._last.update(self._now())
        ticks = sum(n - self._before.get(process, 0) for process, n in self._last.items())
        self.total = ticks / TICKS

    def _look(self) -> None:
        while not self._done.wait(1.0):
            self._last.update(self._now())

    @staticmethod
    def _now() -> dict[int, int]:
        found = {}
        for process in tree_of(os.getpid()):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                found[process] = int(fields[11]) + int(fields[12])
        return found


def largest_worker(of: int, name: bytes) -> int:
    """Most memory without mapped files among the processes below that run ``name``."""
    most = 0
    for process in tree_of(of)[1:]:
        with contextlib.suppress(OSError):
            if name not in Path(f"/proc/{process}/cmdline").read_bytes():
                continue
            status = Path(f"/proc/{process}/status").read_text()
            (line,) = (line for line in status.splitlines() if line.startswith("RssAnon"))
            most = max(most, int(line.split()[1]) * 1024)
    return most


@contextlib.contextmanager
def started(engine: str, workers: int) -> Iterator[None]:
    """Start an engine on this machine, with so many workers of one core."""
    if engine == "ray":
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()
    elif engine == "spark":
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(f"local[{workers}]")
        builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
        session = builder.config("spark.driver.memory", "2g").getOrCreate()
        yield
        session.stop()
    elif engine == "dask":
        from distributed import Client, LocalCluster

        cluster = LocalCluster(workers, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster):
            yield
    else:
        yield


def measured(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    began = time.perf_counter()
    with CpuSeconds() as cpu:
        out = work()
    return {"cpu": cpu.total, "seconds": time.perf_counter() - began}, out


def training(args: argparse.Namespace, tell: Callable[..., None]) -> None:
    data = lt.data.make_longtail(like="Amazon-670K", scale=args.scale, random_state=0).train

    def fit(there: bool) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            model = lt.XRLinear(n_jobs=1 if there else args.workers)
            return model.fit(data.X, data.Y, checkpoint=folder if there else None)

    small = lt.data.make_longtail(n=500, d=100, L=9000, random_state=0).train
    with (
        started(args.engine, args.workers),
        lt.distributed.engine(args.engine, n_jobs=args.workers),
    ):
        warm = tempfile.mkdtemp()
        lt.OneVsAll(max_iter=1).fit(small.X, small.Y, checkpoint=warm)
        shutil.rmtree(warm)
        for run in range(args.runs):
            models = []
            for there in (False, True):
                cost, model = measured(lambda there=there: fit(there))
                tell(run=run, where=args.engine if there else "here", **cost, **_shape(data))
                models.append(model)
            tops = [model.predict_topk(data.X[:2000], 5) for model in models]
            assert tops[0] == tops[1], "the model from the engine is another"


def _shape(data: Any) -> dict[str, int]:
    return {"rows": data.X.shape[0], "labels": data.Y.shape[1]}


def scoring(args: argparse.Namespace, tell: Callable[..., None]) -> None:
    import pandas as pd

    folder = tempfile.mkdtemp()
    make_model(Path(folder), args.labels, 0)
    asked = json.loads(Path(folder, "texts.json").read_text())
    texts = [asked[i % len(asked)] for i in range(args.rows)]
    frame = pd.DataFrame({"id": range(args.rows), "text": texts})

    def cut(whole: Any) -> list[Any]:
        """Return parts one after the other. Every 20th text would be the same hundred texts over
        and over, and search reads weights once for equal rows."""
        size = -(-len(whole) // args.parts)
        return [whole[i : i + size] for i in range(0, len(whole), size)]

    def answer(part: Any) -> Any:
        tagger = lt.load(f"{folder}/model", once=True)
        tagger.model_.n_jobs = 1
        found = tagger.predict(part.set_index("id")["text"], k=3, as_frame=True)
        return found.rename(columns={"row": "id"})[["id", "label", "score"]]

    def score(where: str, rows: str = "rows") -> int:
        if where == "here":
            return len(answer(frame))
        if where == "here, in parts":
            return sum(len(answer(part)) for part in cut(frame))
        if where == "ray":
            import ray.data

            table = ray.data.read_parquet(f"{folder}/{rows}")
            return table.map_batches(answer, batch_format="pandas", batch_size=None).count()
        from pyspark.sql import SparkSession

        table = SparkSession.active().read.parquet(f"{folder}/{rows}")
        kinds = "id long, label string, score double"
        return table.mapInPandas(lambda parts: map(answer, parts), kinds).count()

    places = ["here", "here, in parts"]
    if args.engine != "none":
        places.append(args.engine)
        for name, some in {"rows": frame, "few": frame[: 100 * args.parts]}.items():
            Path(folder, name).mkdir()
            for i, part in enumerate(cut(some)):
                part.to_parquet(f"{folder}/{name}/{i}.parquet")
    with started(args.engine, args.workers):
        if args.engine != "none":
            score(args.engine, "few")
        for run in range(args.runs):
            found = set()
            for where in places:
                cost, n = measured(lambda where=where: score(where))
                tell(run=run, where=where, **cost, rows=args.rows)
                found.add(n)
            assert len(found) == 1
    shutil.rmtree(folder)


def memory(args: argparse.Namespace, tell: Callable[..., None]) -> None:
    """Train by worker processes of this machine and watch the largest of them."""
    folder = Path(tempfile.mkdtemp())
    data = lt.data.make_longtail(like="Amazon-670K", scale=args.scale, random_state=0).train
    lt.features.save_matrix(folder / "X", data.X)
    shape, Y = _shape(data), data.Y
    del data
    X = lt.features.load_matrix(folder / "X")
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.2):
            peak = max(peak, largest_worker(os.getpid(), b"loky"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with lt.distributed.engine("loky", n_jobs=args.workers):
        model = lt.XRLinear(n_jobs=1, memory_limit=args.memory_limit)
        cost, _ = measured(lambda: model.fit(X, Y, checkpoint=folder / "parts"))
    done.set()
    watcher.join()
    tell(where="loky", **cost, largest_worker_gb=peak / 1e9, **shape)
    shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("training", "scoring", "memory"))
    engines = ("ray", "dask", "spark", "loky", "none")  # none: scoring here alone
    parser.add_argument("--engine", default="ray", choices=engines)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--scale", type=float, default=0.3)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parts", type=int, default=20)
    parser.add_argument("--labels", type=int, default=60_000, help="of the model that scores")
    parser.add_argument("--memory-limit", default="4GB")
    parser.add_argument("--journal", type=Path)
    args = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, {' '.join(sys.argv)}", file=sys.stderr)

    def tell(**facts: Any) -> None:
        facts = {k: round(v, 3) if isinstance(v, float) else v for k, v in facts.items()}
        line = json.dumps({"what": args.what, **facts})
        print(line, flush=True)
        if args.journal is not None:
            with args.journal.open("a") as file:
                file.write(line + "\n")

    {"training": training, "scoring": scoring, "memory": memory}[args.what](args, tell)


if __name__ == "__main__":
    main()
