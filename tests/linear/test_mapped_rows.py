"""Training from rows on disk: the same bits, and memory that X does not fill."""

from __future__ import annotations

import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows

import longtail as lt
from longtail import persist
from longtail.features.mapped_rows import is_mapped, scratch_array
from longtail.features.unit_length import unit_rows
from longtail.linear.train.level import LevelProblem, all_rows, train_level
from longtail.linear.train.solver_options import SolverOptions

MAKERS = {
    "XRLinear": lambda: lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[3, 9])),
    "XRLinear(man)": lambda: lt.XRLinear(
        tree=lt.tree.LabelTree(level_sizes=[9]), negatives="tfn+man"
    ),
    "OneVsAll": lt.OneVsAll,
    "OneVsAll(logistic)": lambda: lt.OneVsAll(loss="logistic"),
}


def rows() -> tuple[sp.csr_matrix, Any]:
    X, Y = make_rows(n=200, n_labels=60)
    return sp.csr_matrix(X), Y


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_bits_of_training_in_memory(maker: str, checkpoint: bool, tmp_path: Path) -> None:
    X, Y = rows()
    lt.features.save_matrix(tmp_path / "X", X)
    mapped = lt.features.load_matrix(tmp_path / "X")
    assert is_mapped(mapped.data) and is_mapped(mapped.indices)
    expected = MAKERS[maker]().fit(X, Y)
    found = MAKERS[maker]().fit(mapped, Y, checkpoint=tmp_path / "c" if checkpoint else None)
    for a, b in zip(expected.layers_, found.layers_, strict=True):
        assert all(np.array_equal(a.arrays[name], b.arrays[name]) for name in a.arrays)


def test_rows_of_a_large_parent_go_to_a_file(tmp_path: Path) -> None:
    """Also where they fit in memory: a batch of a byte makes every parent a large one."""
    X, Y = rows()
    lt.features.save_matrix(tmp_path / "X", X)
    Y = lt.data.Split(Y=Y).Y.tocsc()
    problem = LevelProblem(all_rows(X.shape[0]), np.array([0, Y.shape[1]]), Y)
    for solver in ("dual", "newton"):
        options = SolverOptions(solver=solver)
        expected = train_level(X, problem, options, seed=0, n_threads=2)
        mapped = lt.features.load_matrix(tmp_path / "X")
        found = train_level(mapped, problem, options, seed=0, n_threads=2, batch_bytes=1)
        for name, array in expected.arrays.items():
            assert np.array_equal(array, found.arrays[name]), name


def test_scaled_rows_are_mapped_as_well(tmp_path: Path) -> None:
    X, _ = rows()
    lt.features.save_matrix(tmp_path / "X", X)
    mapped = lt.features.load_matrix(tmp_path / "X")
    assert is_mapped(unit_rows(mapped).data) and not is_mapped(unit_rows(X).data)
    assert np.array_equal(unit_rows(mapped).data, unit_rows(X).data)
    assert list(tmp_path.iterdir()) == [tmp_path / "X"]  # what is temporary has no name


def test_saving_blocks(tmp_path: Path) -> None:
    X, _ = rows()

    def blocks() -> Iterator[Any]:
        for begin in range(0, X.shape[0], 64):
            yield X[begin : begin + 64]

    lt.features.save_matrix(tmp_path / "X", blocks())
    assert (lt.features.load_matrix(tmp_path / "X") != X).nnz == 0
    dense = [[0.0, 1.5], [0.0, 0.0]]
    lt.features.save_matrix(tmp_path / "dense", dense)
    assert np.array_equal(lt.features.load_matrix(tmp_path / "dense", mmap=False).toarray(), dense)
    lt.features.save_matrix(tmp_path / "parts", [np.eye(2), np.ones((1, 2))])
    assert lt.features.load_matrix(tmp_path / "parts").toarray().tolist() == [
        [1, 0],
        [0, 1],
        [1, 1],
    ]
    lt.features.save_matrix(tmp_path / "empty", iter([sp.csr_matrix((3, 2))]))
    assert lt.features.load_matrix(tmp_path / "empty").shape == (3, 2)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="same width"):
        lt.features.save_matrix(
            tmp_path / "X", iter([sp.eye(2, format="csr"), sp.eye(3, format="csr")])
        )
    with pytest.raises(ValueError, match="no block"):
        lt.features.save_matrix(tmp_path / "X", iter([]))
    with pytest.raises(ValueError, match="NaN"):
        lt.features.save_matrix(tmp_path / "X", iter([np.array([[np.nan]])]))
    assert not (tmp_path / "X").exists()
    lt.features.save_matrix(tmp_path / "X", np.eye(3))
    with pytest.raises(FileExistsError):
        lt.features.save_matrix(tmp_path / "X", np.eye(3))
    lt.OneVsAll().fit([[1.0], [0.0]], [[0], [1]]).save(tmp_path / "model")
    with pytest.raises(lt.exceptions.ModelFormatError, match="not a saved matrix"):
        lt.features.load_matrix(tmp_path / "model")


@pytest.mark.parametrize(
    "columns, why",
    [([1, 0, 2], "do not ascend"), ([0, 0, 2], "do not ascend"), ([0, 1, 3], "must lie")],
)
def test_damaged_matrices(columns: list[int], why: str, tmp_path: Path) -> None:
    state = persist.State("csr-matrix", meta={"n_rows": 2, "n_cols": 3})
    indices = np.array(columns, np.int32)
    state.put_csr("rows", (np.array([0, 2, 3]), indices, np.ones(3, np.float32), 3))
    persist.save(tmp_path / "X", state)
    with pytest.raises(lt.exceptions.ModelFormatError, match=why):
        lt.features.load_matrix(tmp_path / "X")


def test_a_row_may_begin_below_the_end_of_the_last(tmp_path: Path) -> None:
    X = sp.csr_matrix(np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0], [1, 1, 0]], np.float32))
    lt.features.save_matrix(tmp_path / "X", X)
    assert np.array_equal(lt.features.load_matrix(tmp_path / "X").toarray(), X.toarray())


def test_scratch_goes_where_it_should(tmp_path: Path) -> None:
    array = scratch_array(10, np.float32, tmp_path)
    array[:] = 1
    assert array.sum() == 10 and not list(tmp_path.iterdir())
    assert len(scratch_array(0, np.float32)) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="limits of files are Linux's")
def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    """Not a crash when the pages are written, much later."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="TMPDIR"):
            scratch_array(1000, np.float32, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


OUT_OF_CORE = """
import resource, sys
import numpy as np
import scipy.sparse as sp
import longtail as lt

folder, how = sys.argv[1:]
lt.OneVsAll().fit(np.eye(3), [[0], [1], [2]])  # what is imported counts before the limit
n, width, per_row = 8000, 50_000, 1000
def blocks():
    rng = np.random.default_rng(0)
    for _ in range(8):
        columns = np.sort(rng.integers(0, width // per_row, (n // 8, per_row), np.int32)
                          + np.arange(per_row, dtype=np.int32) * (width // per_row), axis=1)
        values = rng.random(columns.size, np.float32)
        ends = np.arange(0, columns.size + 1, per_row)
        yield sp.csr_matrix((values, columns.ravel(), ends), shape=(n // 8, width))
lt.features.save_matrix(folder + "/X", blocks())
X = lt.features.load_matrix(folder + "/X")
size = 8 * X.nnz
Y = np.arange(n) % 4
used = [int(line.split()[1]) * 1024 for line in open("/proc/self/status") if "VmData" in line][0]
resource.setrlimit(resource.RLIMIT_DATA, (used + size * 3 // 4, resource.RLIM_INFINITY))
if how == "memory":
    X = sp.csr_matrix((X.data.copy(), X.indices, X.indptr), shape=X.shape)
with open("/proc/self/statm") as file:
    resident = int(file.read().split()[1]) * resource.getpagesize()
limit = resident + size // 2 if how == "file" else None
lt.OneVsAll(max_iter=2, n_jobs=2, memory_limit=limit).fit(X, Y, checkpoint=folder + "/" + how)
print("trained")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="sanitizers need memory of their own")
def test_memory_stays_below_the_size_of_X(tmp_path: Path) -> None:
    """With three quarters of its size, training from a file succeeds, and from memory cannot."""
    done = {
        how: subprocess.run(
            [sys.executable, "-c", OUT_OF_CORE, str(tmp_path / how), how],
            capture_output=True,
            text=True,
        )
        for how in ("file", "memory")
    }
    assert done["file"].stdout == "trained\n", done["file"].stderr
    assert "MemoryError" in done["memory"].stderr


def test_a_model_under_a_memory_limit_lies_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts go to temporary files as they finish, bit by bit the model trained in memory."""
    monkeypatch.setattr("longtail.linear.search.layer._LARGE", 64)
    X, Y = make_rows(n=400, n_labels=40)
    for maker in (lt.OneVsAll, lambda **more: lt.XRLinear(tree=lt.tree.LabelTree(leaf=10), **more)):
        plain, limited = maker().fit(X, Y), maker(memory_limit="8GB").fit(X, Y)
        assert is_mapped(limited.layers_[-1].arrays["value"])
        assert not is_mapped(plain.layers_[-1].arrays["value"])
        for ours, theirs in zip(limited.layers_, plain.layers_, strict=True):
            for name, array in theirs.arrays.items():
                np.testing.assert_array_equal(ours.arrays[name], array)
        assert pickle.loads(pickle.dumps(limited)).predict_topk(X) == plain.predict_topk(X)
