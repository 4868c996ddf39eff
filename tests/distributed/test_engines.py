"""Training on engines that are started here: Ray with two nodes, Dask, Spark with two executors."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engine_tasks
import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.distributed import engine, tasks
from longtail.distributed.tasks import Task, finish
from longtail.linear.train import elsewhere

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PAGE = Path(__file__).parents[2] / "docs" / "more-machines.md"
NEEDS = {"ray": "ray", "dask": "dask.distributed", "spark": "joblibspark"}


def _ray(env: pytest.MonkeyPatch) -> Iterator[None]:
    env.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))  # or Ray writes one to the home folder
    env.setenv("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    ray.init(address=cluster.address, log_to_driver=False)
    yield
    ray.shutdown()
    cluster.shutdown()


def _dask(env: pytest.MonkeyPatch) -> Iterator[None]:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster):
        yield


def _spark(env: pytest.MonkeyPatch) -> Iterator[None]:
    if not shutil.which("java"):
        pytest.skip("Spark needs Java")
    env.setenv("PYSPARK_PYTHON", sys.executable)
    env.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executor.memory", "1024m")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    yield
    session.stop()


START = {"ray": _ray, "dask": _dask, "spark": _spark}


@pytest.fixture(scope="module", params=START)
def running(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of an engine, which runs with two workers of one core each."""
    name = request.param
    pytest.importorskip(NEEDS[name], reason=f"needs longtail[{name}]: make engines")
    with pytest.MonkeyPatch.context() as env:
        env.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        env.chdir(tmp_path_factory.mktemp(name))  # Spark leaves folders where it runs
        started = START[name](env)
        next(started)
        yield name
        next(started, None)


# What the page calls the engine, how its table is made of a data frame, and how rows are fetched.
SCORING = {
    "ray": (
        "Ray Data",
        "import ray.data\ndataset = ray.data.from_pandas(rows).repartition(3)",
        "answers.to_pandas().itertuples(index=False)",
    ),
    "dask": (
        "Dask DataFrame",
        "import dask.dataframe\nframe = dask.dataframe.from_pandas(rows, npartitions=3)",
        "answers.compute().itertuples(index=False)",
    ),
    "spark": (
        "Spark",
        "from pyspark.sql import SparkSession\n"
        "table = SparkSession.active().createDataFrame("
        "list(rows.itertuples(index=False, name=None)), 'id long, text string')",
        "answers.collect()",
    ),
}


@pytest.fixture(scope="module")
def rows() -> tuple[sp.csr_matrix, list[list[int]]]:
    X = sp.random(120, 40, density=0.2, random_state=0, format="csr", dtype=np.float32)
    labels = np.random.default_rng(0).integers(0, 9_000, 120)
    return X, [[8_999], *([int(label)] for label in labels[1:])]


def bits(model: Any) -> list[bytes]:
    """The bytes of every array of every layer."""
    return [
        layer.arrays[name].tobytes() for layer in model.layers_ for name in sorted(layer.arrays)
    ]


@pytest.mark.parametrize("make", [lt.OneVsAll, lt.XRLinear])
def test_the_same_bits(running: str, make: Any, rows: Any, tmp_path: Path) -> None:
    with engine(running):
        there = make(max_iter=3).fit(*rows, checkpoint=tmp_path / "c")
    assert bits(there) == bits(make(max_iter=3).fit(*rows))


def test_the_recipe_on_the_page(running: str, rows: Any) -> None:
    """What docs/more-machines.md tells to write, with the clusters of these tests."""
    page = PAGE.read_text(encoding="utf-8")
    (recipe,) = re.findall(rf"^```python\n([^`]*engine\(\"{running}\"\)[^`]*)```", page, re.M)
    for start in ("ray.init()", "Client()", "SparkSession.builder.getOrCreate()"):
        recipe = recipe.replace(start, "None")  # it runs already
    names: dict[str, Any] = {"X": rows[0], "Y": rows[1]}
    exec(recipe, names)
    assert bits(names["model"]) == bits(lt.XRLinear().fit(*rows))
    assert list(Path("shared", running).glob("level*"))


def test_texts_become_the_rows_of_one_machine(running: str, tmp_path: Path) -> None:
    texts = ["red apple pie", "green apple", "red car", "blue car fast"] * 5
    files = []
    for i in range(3):
        files.append(tmp_path / f"{i}.jsonl")
        lines = (json.dumps({"text": text, "labels": text.split()[-1:]}) for text in texts[i::3])
        files[-1].write_text("\n".join(lines))
    with engine(running):
        lt.features.vectorize_files(files, tmp_path / "there", block=50)
    lt.features.vectorize_files(files, tmp_path / "here")
    there, here = (lt.features.load_vectorized(tmp_path / name).train for name in ("there", "here"))
    assert (there.X != here.X).nnz == 0 and (there.Y != here.Y).nnz == 0
    assert there.X.shape == here.X.shape == (20, 7)


def test_workers_of_ray_stay_until_the_end_of_the_context(running: str) -> None:
    if running != "ray":
        pytest.skip("the others keep theirs by themselves")
    from joblib import Parallel, delayed

    with engine(running):
        first, second = (set(Parallel()(delayed(os.getpid)() for _ in range(8))) for _ in range(2))
        assert first and first & second
    deadline = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}") for pid in first | second):
        assert time.monotonic() < deadline, "the workers did not end"
        time.sleep(0.1)


def test_scoring_gives_the_local_answers(running: str, tmp_path: Path) -> None:
    """The one-liners of docs/more-machines.md, on the clusters of these tests."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    names: dict[str, Any] = {"__name__": "__main__"}  # so that functions travel by value
    page = PAGE.read_text(encoding="utf-8")
    (function,) = re.findall(r"^```python\n([^`]*def answer[^`]*)```", page, re.M)
    exec(function.replace("shared/tagger", str(tmp_path / "tagger")), names)
    texts = ["red apple pie", "green apple", "red car", "blue car fast"] * 10
    labels = [["fruit", "red"], ["fruit"], ["car", "red"], ["car"]] * 10
    lt.Tagger(model=lt.XRLinear()).fit(texts, labels).save(tmp_path / "tagger")
    rows = pd.DataFrame({"id": range(40), "text": texts})
    title, make, fetch = SCORING[running]
    (line,) = re.findall(rf"^(answers = .*?) +# {title}$", page, re.M)
    exec(make, names | {"rows": rows}, names)
    exec(f"{line}\nfound = {fetch}", names)
    there, here = (
        sorted((int(i), str(label), float(np.float32(score))) for i, label, score in frame)
        for frame in (names["found"], names["answer"](rows).itertuples(index=False))
    )
    assert len(here) == 120 and there == here


def test_an_error_stops_the_others(running: str, tmp_path: Path) -> None:
    both = [
        Task("a", engine_tasks.wait, (str(tmp_path), "a")),
        Task("b", engine_tasks.fail, (str(tmp_path), "b")),
    ]
    begun = time.monotonic()
    with engine(running), pytest.raises(OSError, match="No space left"):
        finish(both, tmp_path, what="letters")
    assert time.monotonic() - begun < 50, "the waiting task was not stopped"


def test_another_version(running: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "__version__", "0.0.1")
    task = Task("a", engine_tasks.leave, (str(tmp_path), "a"))
    with engine(running), pytest.raises(RuntimeError, match=r"the caller has 0\.0\.1"):
        finish([task], tmp_path, what="letters")


@pytest.mark.filterwarnings("ignore:OneVsAll. a worker was lost")
def test_a_lost_worker(
    running: str, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "_train", engine_tasks.train_or_die)
    with engine(running):
        there = lt.OneVsAll(max_iter=3).fit(*rows, checkpoint=tmp_path / "c")
    assert (tmp_path / "c" / "died").exists()
    assert bits(there) == bits(lt.OneVsAll(max_iter=3).fit(*rows))
