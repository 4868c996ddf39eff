"""The core trusts no array: what would make it read or write past one is refused, or kept alive."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows

import longtail as lt
from longtail._native import core, csr_args
from longtail.linear.search.layer import Layer
from longtail.linear.train.memory import plan_memory

X, Y = make_rows(n=60, n_labels=40)
PARAMS = ("loss", "dual", "tolerance", "max_iter", "bias", "threshold", "seed", "most_entries")
PARAMS += ("scratch_bytes", "seats", "rank")


def level(**changed: Any) -> dict[str, Any]:
    """Arguments of one level: two parents with 20 children each, all rows for both."""
    n = X.shape[0]
    by_label = Y.tocsc()
    by_label.sort_indices()
    arguments = {
        "X": csr_args(X),
        "parent_ptr": np.array([0, n, 2 * n], np.int64),
        "parent_rows": np.tile(np.arange(n, dtype=np.int32), 2),
        "child_ptr": np.array([0, 20, 40], np.int64),
        "positive_ptr": by_label.indptr.astype(np.int64),
        "positive_rows": by_label.indices.astype(np.int32),
        "positive_sign": None,
        "positive_cost": np.ones(by_label.nnz, np.float32),
        "negative_cost": np.ones(40, np.float32),
        "row_weight": None,
        "loss": 0,
        "dual": True,
        "tolerance": 0.1,
        "max_iter": 20,
        "bias": 1.0,
        "threshold": 0.0,
        "seed": 0,
    }
    return {**arguments, **changed}


def train(fields: dict[str, Any], n_threads: int = 1) -> tuple[dict[str, np.ndarray], Any]:
    params = {name: fields[name] for name in fields if name in PARAMS}
    arrays = {name: fields[name] for name in fields if name not in PARAMS}
    out: tuple[dict[str, np.ndarray], Any] = core.train_level(
        core.Level(**arrays), core.LevelParams(**params), n_threads
    )
    return out


def changed(name: str, at: int, value: int) -> dict[str, Any]:
    if name in ("indptr", "indices"):
        parts = list(csr_args(X))
        which = ("indptr", "indices").index(name)
        parts[which] = parts[which].copy()
        parts[which][at] = value
        return level(X=tuple(parts))
    array = level()[name].copy()
    array[at] = value
    return level(**{name: array})


def test_a_level_as_it_should_be() -> None:
    arrays, about = train(level())
    assert len(arrays["bias"]) == 40 and about["threads"] == 1


@pytest.mark.parametrize(
    "name, at, value",
    [
        ("indptr", 3, 10**9),
        ("indptr", 3, -1),
        ("indices", 5, 10**9),
        ("indices", 5, -1),
        ("indices", 0, 10**6),  # and so not in order either
        ("parent_ptr", 1, -5),
        ("parent_ptr", 1, 10**6),
        ("parent_rows", 7, 10**6),
        ("parent_rows", 7, -1),
        ("parent_rows", 7, 0),
        ("child_ptr", 1, 10**6),
        ("child_ptr", 1, -1),
        ("positive_ptr", 4, 10**9),
        ("positive_ptr", 4, -1),
        ("positive_rows", 0, 10**6),
        ("positive_rows", 0, -1),
    ],
)
def test_training_refuses_indices_out_of_order_or_range(name: str, at: int, value: int) -> None:
    with pytest.raises(ValueError, match=r"must|ascend|start at 0"):
        train(changed(name, at, value))


@pytest.mark.parametrize("at, value", [(0, -1), (5, 10**9), (1, 0)])
def test_sparse_arguments_are_checked_by_the_core(at: int, value: int) -> None:
    indptr, indices, values, n_cols = csr_args(X)
    indices = indices.copy()
    indices[at] = value
    with pytest.raises(ValueError, match="columns of row 0 must ascend"):
        core.topk_csr((indptr, indices, values, n_cols), 2, 1)


def test_more_weights_than_offsets_can_count_are_refused() -> None:
    """32 bits count the entries of a chunk; the limit is lowered here to reach it."""
    with pytest.raises(ValueError, match=r"20 labels have \d+ weights together.*threshold"):
        train(level(most_entries=50))
    weights = sp.random(30, 50, density=0.5, format="csr", dtype=np.float32, random_state=0)
    weights.sort_indices()
    bias, child_ptr = np.zeros(30, np.float32), np.array([0, 30], np.int64)
    assert core.build_layer(csr_args(weights), bias, child_ptr, 1, most_entries=weights.nnz)
    with pytest.raises(ValueError, match="30 labels have"):
        core.build_layer(csr_args(weights), bias, child_ptr, 1, most_entries=weights.nnz - 1)


def test_arrays_of_a_layer_cannot_be_written() -> None:
    model = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[4])).fit(X, Y)
    loaded = Layer.from_state(_state(model), "layer0")
    for layer in (*model.layers_, loaded):
        for name, array in layer.arrays.items():
            with pytest.raises(ValueError, match="read-only"):
                array[:1] = 0
            assert not array.flags.writeable, name
    arrays, _ = train(level())
    assert not any(array.flags.writeable for array in arrays.values())


def _state(model: Any) -> Any:
    return model._get_state()


CONVERTED = """
import gc
import numpy as np
import scipy.sparse as sp
from longtail._native import core, csr_args
from longtail.linear.search.layer import Layer

rng = np.random.default_rng(0)
n_features, n_labels = 20_000, 1000
X = sp.random(50, n_features, density=0.002, format="csr", dtype=np.float32, random_state=0)
X.sort_indices()
weights = np.where(rng.random((n_labels, n_features)) < 0.05, 1.0, 0.0).astype(np.float32)
layer = Layer.from_csr(sp.csr_matrix(weights), np.zeros(n_labels, np.float32), [0, n_labels])

def searcher(arrays):
    transforms, powers = np.array([0], np.int32), np.array([1], np.int32)
    return core.BeamSearcher([arrays], transforms, powers, None, n_features)

def ask(searcher):
    return searcher.search_sparse(csr_args(X), 5, [], False, 1)

expected = ask(searcher(dict(layer.arrays)))
strided = {name: np.repeat(array, 2)[::2] for name, array in layer.arrays.items()}
other = searcher(strided)  # what is viewed are contiguous copies that nobody else holds
del strided
gc.collect()
filler = [np.full(array.nbytes, 255, np.uint8) for array in layer.arrays.values() for _ in range(4)]
found = ask(other)
assert all(np.array_equal(a, b) for a, b in zip(expected, found)), "the arrays were freed"
"""


def test_converted_arrays_live_as_long_as_the_searcher() -> None:
    """In a process of its own: what reads freed memory may end the process."""
    done = subprocess.run([sys.executable, "-c", CONVERTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_threads_keep_to_their_memory() -> None:
    one = train(level())[0]
    needed = core.worker_bytes(X.shape[0], X.nnz, X.shape[1], 0, True)
    assert needed > 68 * X.shape[0]
    for room, threads in [(needed * 10, 4), (needed * 2 + 1, 2), (0, 1)]:
        arrays, about = train(level(scratch_bytes=room), n_threads=4)
        assert about["threads"] == threads
        assert all(np.array_equal(one[name], arrays[name]) for name in one)


def test_a_memory_limit_counts_what_threads_need() -> None:
    rows = sp.random(20_000, 300, density=0.01, format="csr", dtype=np.float32, random_state=0)
    labels = sp.random(20_000, 10, density=0.05, format="csr", dtype=np.float32, random_state=1)
    limit, in_use = 200_000_000, 0
    plan = plan_memory(limit, rows, labels, in_use=in_use)
    one = core.worker_bytes(*rows.shape[:1], rows.nnz, rows.shape[1], 0, True)
    assert one <= plan.scratch_bytes <= limit - plan.batch_bytes
    newton = plan_memory(limit, rows, labels, dual=False, in_use=in_use)
    assert core.worker_bytes(20_000, rows.nnz, 300, 0, False) > one
    with pytest.raises(ValueError, match="too small"):
        plan_memory(50_000_000 + one, rows, labels, in_use=0)
    assert newton.scratch_bytes > 0


def test_weights_that_are_not_finite_become_no_whole_numbers() -> None:
    weights = sp.csr_matrix(np.array([[1.0, np.inf], [np.nan, 2.0]], np.float32))
    layer = Layer.from_csr(weights, np.zeros(2, np.float32), np.array([0, 2]))
    for precision in ("int8", "bf16"):
        with pytest.raises(ValueError, match="not finite"):
            layer.with_precision(precision)


def test_rows_with_nan_are_not_clustered() -> None:
    rows = X[:40].copy()
    rows.data[3] = np.nan
    order, splits = np.arange(40, dtype=np.int32), np.array([[0, 20, 40]], np.int64)
    how = {"max_iter": 5, "spherical": True, "seed": 0, "large": 1000, "n_threads": 1}
    rounds = np.array([0, 1], np.int64)
    with pytest.raises(ValueError, match="NaN"):
        core.balanced_splits_csr(csr_args(rows), splits, rounds, **how, order=order)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_seats_change_who_works_and_nothing_else(n_threads: int) -> None:
    expected, _ = train(level())
    arrays, _ = train(level(seats=core.Seats(2, 3), rank=2), n_threads)
    assert all(np.array_equal(arrays[name], expected[name]) for name in expected)


@pytest.mark.parametrize("rank", [-1, 3])
def test_a_rank_that_the_seats_do_not_know(rank: int) -> None:
    with pytest.raises(ValueError, match="no such rank"):
        train(level(seats=core.Seats(2, 3), rank=rank))
    with pytest.raises(TypeError, match="seats is of another kind"):
        train(level(seats=2, rank=0))


def test_structs_of_the_core_take_their_own_fields_only() -> None:
    fields = {"loss": 0, "dual": True, "tolerance": 0.1, "max_iter": 1, "bias": 1.0}
    with pytest.raises(ValueError, match="the field threshold is missing"):
        core.LevelParams(**fields)
    with pytest.raises(ValueError, match="a name that this struct does not have"):
        core.LevelParams(**fields, threshold=0.1, treshold=0.1)
    with pytest.raises(TypeError, match="the field tolerance is of another kind"):
        core.LevelParams(**{**fields, "tolerance": "small"}, threshold=0.1)
    with pytest.raises(TypeError, match="the field X is of another kind"):
        core.Level(X=X)
