"""Many Python threads ask one model at once: right answers, and nobody waits for another."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt


def together(n: int, work: Callable[[int], None]) -> None:
    """Runs work(0) … work(n - 1) in threads that start at once; raises what they raise."""
    barrier = threading.Barrier(n)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.data.make_longtail(n=1500, d=300, L=200, n_test=600, random_state=0)


@pytest.fixture(scope="module")
def saved(data: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "m"
    tree = lt.tree.LabelTree(level_sizes=[4, 16])
    model = lt.XRLinear(tree=tree).fit(data.train.X, data.train.Y)
    model.calibrate(data.test.X, data.test.Y).name_labels([f"l{i}" for i in range(200)])
    model.save(folder)
    return folder


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_different_questions_at_once(saved: Path, data: Any, n_jobs: int) -> None:
    """Each thread has rows, k, beam, filter and layout of its own, on one freshly loaded model."""
    X = data.test.X
    dense = X.toarray()
    lists = [np.random.default_rng(i).choice(200, 40, replace=False) for i in range(600)]

    def ask(model: Any, i: int, round_: int) -> Any:
        rows = slice(37 * i % 400, 37 * i % 400 + 150)
        kind = (i + round_) % 4
        if kind == 0:
            return model.predict_topk(X[rows], k=1 + i, beam=1 + i)
        if kind == 1:
            return model.predict_topk(dense[rows], k=2 + i)
        if kind == 2:
            return model.predict_topk(X[rows], k=3, include=lists[rows])
        return model.predict_proba_topk(X[rows], k=5, exclude=["l3", "l7"])

    alone = lt.load(saved)
    expected = [[ask(alone, i, r) for r in range(4)] for i in range(8)]
    model = lt.load(saved).set_params(n_jobs=n_jobs)

    def work(i: int) -> None:
        for _ in range(5):
            for r in range(4):
                assert ask(model, i, r) == expected[i][r]

    together(8, work)


def test_the_first_call_may_come_from_many_threads(saved: Path, data: Any) -> None:
    """What a model makes when it is first asked (searcher, leaf index) it may make at once."""
    X = data.test.X[:40]
    expected = lt.load(saved).predict_topk(X, k=4, include=[5, 6, 7, 8])
    state = pickle.dumps(lt.load(saved))
    for _ in range(20):
        fresh = pickle.loads(state)

        def work(i: int, model: Any = fresh) -> None:
            assert model.predict_topk(X, k=4, include=[5, 6, 7, 8]) == expected

        together(6, work)


@pytest.mark.parametrize("kind", ["XRLinear", "NearestNeighbors"])
def test_the_interpreter_runs_on_while_a_model_searches(kind: str) -> None:
    """Were the lock held during the search, this thread would stand still for all of it."""
    rng = np.random.default_rng(0)
    n, d, per_row = 3000, 400, 100
    columns = (rng.integers(0, d, (n, 1)) + np.arange(per_row)) % d
    X = sp.csr_matrix(
        (rng.random(n * per_row, np.float32), columns.ravel(), np.arange(n + 1) * per_row)
    )
    Y = sp.csr_matrix((np.ones(n, np.float32), rng.integers(0, 300, n), np.arange(n + 1)))
    made = {
        "XRLinear": lambda: lt.XRLinear(tree=lt.tree.LabelTree(leaf=300), max_iter=1, n_jobs=1),
        "NearestNeighbors": lambda: lt.baselines.NearestNeighbors(n_jobs=1),
    }
    model = made[kind]().fit(X, Y)
    model.predict_topk(X[:10])
    wide = sp.vstack([X] * (8 if kind == "XRLinear" else 1)).tocsr()
    span: list[float] = []

    def search() -> None:
        start = time.perf_counter()
        model.predict_topk(wide)
        span.extend([start, time.perf_counter()])

    thread = threading.Thread(target=search)
    ticks = []
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    start, stop = span
    assert stop - start > 0.05, "too quick to tell"
    inside = [start, *(tick for tick in ticks if start < tick < stop), stop]
    assert np.diff(inside).max() < 0.6 * (stop - start)
