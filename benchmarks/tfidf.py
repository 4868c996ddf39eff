"""How fast do texts become TF-IDF rows, against scikit-learn and PECOS?

    python benchmarks/tfidf.py --data TIB-SID-en [--ngrams 1 2] [--n-jobs 2] [--rounds 3]
                               [--pecos-python VENV/bin/python]

Each system runs in a process of its own and they take turns, so that a busy machine is as busy for
all; wall time and CPU time of the same calls are told apart. The task is to learn a vocabulary from
the training texts and to return their rows (``fit_transform``; for PECOS ``train``, then
``predict``), with sublinear tf, terms of at least two texts and unit rows; then to transform the
test texts, and single ones. Our matrices must equal scikit-learn's, entry by entry; PECOS cuts at
spaces alone and does not fold case, and so has less to do and another vocabulary. The floor is what
no vectoriser can avoid: reading the texts once and writing fresh memory of the result's size.

PECOS (``libpecos``) pins old packages: give the Python of a virtual environment that has it.
``--data`` is a folder with ``trn.jsonl.gz`` and ``tst.jsonl.gz``, or a name below LONGTAIL_DATA.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from machine import cpu_name

N_SINGLE = 2000


def read_texts(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


class Longtail:
    def __init__(self, ngrams: tuple[int, int], n_jobs: int) -> None:
        import longtail as lt

        self.version = f"longtail {lt.__version__}"
        self.vectoriser = lt.Tfidf(ngram_range=ngrams, n_jobs=n_jobs)
        self.fit_transform = self.vectoriser.fit_transform
        self.transform = self.vectoriser.transform
        self.one: Callable[[str], Any] = self.vectoriser.transform_one


class ScikitLearn:
    def __init__(self, ngrams: tuple[int, int], n_jobs: int) -> None:
        import sklearn
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.version = f"scikit-learn {sklearn.__version__}"
        self.vectoriser = TfidfVectorizer(
            ngram_range=ngrams, min_df=2, sublinear_tf=True, dtype=np.float32
        )
        self.fit_transform = self.vectoriser.fit_transform
        self.transform = self.vectoriser.transform
        self.one: Callable[[str], Any] = lambda text: self.transform([text])


class Pecos:
    def __init__(self, ngrams: tuple[int, int], n_jobs: int) -> None:
        from importlib.metadata import version

        from pecos.utils.featurization.text.vectorizers import Tfidf

        self.version = f"libpecos {version('libpecos')}"
        self.train, self.n_jobs = Tfidf.train, n_jobs
        self.config = {
            "ngram_range": ngrams,
            "min_df_cnt": 2,
            "sublinear_tf": True,
            "add_one_idf": True,  # scikit-learn's idf
            "threads": n_jobs,
        }
        self.one: Callable[[str], Any] = lambda text: self.model.predict([text], threads=1)

    def fit_transform(self, texts: list[str]) -> Any:
        self.model = self.train(texts, self.config)
        return self.transform(texts)

    def transform(self, texts: list[str]) -> Any:
        return self.model.predict(texts, threads=self.n_jobs)


SYSTEMS = {"longtail": Longtail, "scikit-learn": ScikitLearn, "PECOS": Pecos}


def worker(name: str, folder: Path, ngrams: tuple[int, int], n_jobs: int) -> None:
    """Obeys lines of JSON on standard input, and answers each with one on standard output."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is not an answer
    texts = {part: read_texts(folder / f"{part}.jsonl.gz") for part in ("trn", "tst")}
    system = SYSTEMS[name](ngrams, n_jobs)
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    X: Any = None
    print(json.dumps({"version": system.version}), file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any] = {}
        if order["do"] == "single":
            times = []
            for text in texts["tst"][:N_SINGLE]:
                start = time.perf_counter()
                system.one(text)
                times.append(1e6 * (time.perf_counter() - start))
            answer["single"] = np.percentile(times, [50, 99]).tolist()
        elif order["do"] == "keep":
            sp.save_npz(order["path"], X.tocsr(), compressed=False)
        else:
            X = None  # or two results would be held at once
            method, part = order["do"], "trn" if order["do"] == "fit_transform" else "tst"
            wall, cpu = time.perf_counter(), time.process_time()
            X = getattr(system, method)(texts[part])
            answer["wall"], answer["cpu"] = time.perf_counter() - wall, time.process_time() - cpu
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            answer.update(shape=list(X.shape), nnz=int(X.nnz), megabytes=(peak - loaded) / 1024)
        print(json.dumps(answer), file=answers, flush=True)


class Process:
    """A worker, seen from outside."""

    def __init__(self, python: str, name: str, folder: Path, args: argparse.Namespace) -> None:
        command = [python, __file__, "--worker", name, "--data", str(folder)]
        command += ["--ngrams", *map(str, args.ngrams), "--n-jobs", str(args.n_jobs)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer()["version"]

    def __call__(self, do: str, **more: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps({"do": do, **more}), file=self.process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a worker failed: {' '.join(map(str, self.process.args))}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def check_equal(ours: Path, theirs: Path) -> float:
    """Stops unless both matrices have the same entries; the largest difference of two values."""
    X, Y = sp.load_npz(ours), sp.load_npz(theirs)
    Y.sort_indices()
    same = X.shape == Y.shape and np.array_equal(X.indptr, Y.indptr)
    if not (same and np.array_equal(X.indices, Y.indices)):
        raise SystemExit("longtail and scikit-learn disagree")
    difference = float(np.abs(X.data - Y.data).max())
    if difference > 1e-6:
        raise SystemExit(f"longtail and scikit-learn differ by {difference}")
    return difference


def floor(texts: list[str], n_bytes: int) -> float:
    """Seconds to read every byte of the texts and to write n_bytes of fresh memory, one thread."""
    raw = [np.frombuffer(text.encode("utf-8"), np.uint8) for text in texts]
    start = time.perf_counter()
    for array in raw:
        array.max(initial=0)
    np.empty(n_bytes, np.uint8).fill(1)
    return time.perf_counter() - start


def report(task: str, results: dict[str, list[dict[str, Any]]], n_bytes: int) -> None:
    print(f"\n{task:14s} {'wall s':>8s} {'CPU s':>8s} {'MB/s':>7s}   slower than longtail by")
    print(f"{'':14s} {'median':>8s} {'median':>8s} {'':>7s}   {'wall':>6s} {'CPU':>6s}")
    middle = {
        name: {key: statistics.median(r[key] for r in rows) for key in ("wall", "cpu")}
        for name, rows in results.items()
    }
    ours = middle["longtail"]
    for name, own in middle.items():
        print(
            f"{name:14s} {own['wall']:8.3f} {own['cpu']:8.3f} {n_bytes / own['wall'] / 1e6:7.1f}"
            f"   {own['wall'] / ours['wall']:6.1f} {own['cpu'] / ours['cpu']:6.1f}"
        )


def find_data(name: str | None) -> Path:
    root = Path(os.environ.get("LONGTAIL_DATA", "."))
    folder = root / (name or "TIB-SID-en")  # an absolute path stays what it is
    if not (folder / "trn.jsonl.gz").exists():
        raise SystemExit(f"{folder}/trn.jsonl.gz is missing: set LONGTAIL_DATA, or give --data")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--data")
    parser.add_argument("--ngrams", type=int, nargs=2, default=[1, 2])
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pecos-python")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    folder = find_data(args.data).resolve()
    if args.worker:
        worker(args.worker, folder, tuple(args.ngrams), args.n_jobs)
        return

    pythons = {"longtail": sys.executable, "scikit-learn": sys.executable}
    if args.pecos_python:
        pythons["PECOS"] = args.pecos_python
    else:
        print("PECOS is left out: give --pecos-python")
    systems = {name: Process(python, name, folder, args) for name, python in pythons.items()}
    print(f"machine   {cpu_name()}, {os.cpu_count()} cores, {platform.platform()}")
    print(f"versions  Python {platform.python_version()}, NumPy {np.__version__}, ", end="")
    print(", ".join(system.version for system in systems.values()))
    print(f"command   python {' '.join(sys.argv)}")
    texts = {part: read_texts(folder / f"{part}.jsonl.gz") for part in ("trn", "tst")}
    sizes = {part: sum(len(text.encode()) for text in texts[part]) for part in texts}
    print(f"data      {folder.name}: {len(texts['trn'])} texts to learn from, ", end="")
    print(f"{sizes['trn'] / 1e6:.1f} MB; {len(texts['tst'])} more, {sizes['tst'] / 1e6:.1f} MB")

    results: dict[str, dict[str, list[Any]]] = {
        task: {name: [] for name in systems} for task in ("fit_transform", "transform")
    }
    with tempfile.TemporaryDirectory() as kept:
        for turn in range(args.rounds):
            for task in results:
                for name, system in systems.items():
                    results[task][name].append(system(task))
                    if turn == 0 and name != "PECOS":
                        system("keep", path=f"{kept}/{task}-{name}.npz")
            print(f"round     {turn + 1} of {args.rounds}, load {os.getloadavg()[0]:.1f}")
        for task in results:
            paths = [Path(kept) / f"{task}-{name}.npz" for name in ("longtail", "scikit-learn")]
            print(f"check     {task} equals scikit-learn's, to {check_equal(*paths):.1e}")
    singles = {name: system("single")["single"] for name, system in systems.items()}

    for name in systems:
        first = results["fit_transform"][name][0]
        print(f"result    {name}: {first['shape'][0]} x {first['shape'][1]}, ", end="")
        print(f"{first['nnz']} entries; {first['megabytes']:.0f} MB of memory above the texts")
    for task, part in (("fit_transform", "trn"), ("transform", "tst")):
        report(task, results[task], sizes[part])
    print(f"\n{'one text':14s} {'p50 us':>8s} {'p99 us':>8s}")
    for name, (p50, p99) in singles.items():
        print(f"{name:14s} {p50:8.0f} {p99:8.0f}")
    best = min(row["wall"] for row in results["fit_transform"]["longtail"])
    bound = min(
        floor(texts["trn"], 8 * results["fit_transform"]["longtail"][0]["nnz"]) for _ in "12"
    )
    print(
        f"\nfloor     {bound:.3f} s by one thread; fit_transform at best takes {best / bound:.1f}x"
    )


if __name__ == "__main__":
    main()
