"""Several NUMA nodes, simulated: rows are copied, threads pinned, and the bits stay the same."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pytest
from linear_cases import make_rows

import longtail as lt
from longtail._native import core, csr_args
from longtail.linear.train.memory import plan_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads are pinned on Linux only")


def cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def two_nodes() -> str:
    """The first and the last CPU we may use, as two nodes; on a single one they share it."""
    return f"{cpus()[0]};{cpus()[-1]}"


def train(n_threads: int, batch_bytes: int = 1 << 30) -> tuple[dict[str, Any], dict[str, int]]:
    X, Y = make_rows(n=300, n_labels=200)
    n, n_labels = Y.shape
    positives = Y.tocsc()
    level = core.Level(
        X=csr_args(X),
        parent_ptr=np.array([0, n], np.int64),
        parent_rows=np.arange(n, dtype=np.int32),
        child_ptr=np.array([0, n_labels], np.int64),
        positive_ptr=positives.indptr.astype(np.int64),
        positive_rows=positives.indices.astype(np.int32),
        positive_cost=np.ones(positives.nnz, np.float32),
        negative_cost=np.ones(n_labels, np.float32),
    )
    params = core.LevelParams(
        loss=0,
        dual=True,
        tolerance=0.01,
        max_iter=200,
        bias=1.0,
        threshold=0.0,
        seed=0,
        batch_bytes=batch_bytes,
    )
    arrays, about = core.train_level(level, params, n_threads)
    return arrays, about


def test_the_same_bits_on_two_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_NUMA", "off")
    expected, about = train(4)
    assert about["copies"] == 0
    monkeypatch.setenv("LONGTAIL_NUMA", two_nodes())
    before = os.sched_getaffinity(0)
    copies = []
    for _ in range(5):  # one thread may get all of so little work
        found, about = train(4)
        assert all(np.array_equal(found[name], expected[name]) for name in expected)
        copies.append(about["copies"])
    assert set(copies) <= {0, 1} and 1 in copies
    assert os.sched_getaffinity(0) == before  # the calling thread goes where it went


def test_rows_that_do_not_fit_twice_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_NUMA", two_nodes())
    expected, _ = train(4)
    found, about = train(4, batch_bytes=1000)
    assert about["copies"] == 0
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_nodes_are_those_we_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_NUMA", f"{cpus()[0]},65000;{cpus()[-1]};64000-64002")
    assert core.numa_cpus(8) == [[cpus()[0]], [cpus()[-1]]]
    assert core.numa_cpus(1) == []  # fewer threads than nodes: the system knows better
    monkeypatch.setenv("LONGTAIL_NUMA", "64000;64001")
    assert core.numa_cpus(8) == []
    monkeypatch.delenv("LONGTAIL_NUMA")
    assert all(cpu in cpus() for node in core.numa_cpus(1 << 20) for cpu in node)


@pytest.mark.parametrize(
    "wrong", ["many", "0-", "3-1;2", "0;;1", "-1;0", "0;99999999999", "70000;1"]
)
def test_what_is_no_list_of_cpus(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_NUMA", wrong)
    with pytest.raises(ValueError, match="list of CPUs"):
        lt.OneVsAll(n_jobs=2).fit([[1.0], [0.0]], [[0], [1]])


def test_several_nodes_get_larger_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = make_rows()
    monkeypatch.setenv("LONGTAIL_NUMA", "off")
    one = plan_memory(None, X, Y).batch_bytes
    monkeypatch.setenv("LONGTAIL_NUMA", two_nodes())
    assert plan_memory(None, X, Y).batch_bytes >= one == 1 << 30
