"""Whatever form the data come in, the answer is the same, and the data are left as they were."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from longtail.testing.problems import Problem, assert_close, features, shared

Make = Callable[..., Any]


def shuffled(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return the same matrix with the columns of every row in descending order, entries split in
    two.
    """
    coo = X.tocoo()
    order = np.lexsort((-coo.col, coo.row))
    halves = np.repeat(coo.data[order] / 2, 2)
    offsets = np.concatenate([[0], np.cumsum(np.diff(X.indptr) * 2)])
    return sp.csr_matrix((halves, np.repeat(coo.col[order], 2), offsets), shape=X.shape)


def wide(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return the matrix with 64-bit indices."""
    out = X.copy()
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def roomy(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return the matrix with room for more entries at the end, which SciPy allows."""
    out = X.copy()
    out.indices = np.concatenate([out.indices, np.full(7, 10**6, out.indices.dtype)])
    out.data = np.concatenate([out.data, np.full(7, np.nan, out.data.dtype)])
    return out


def frozen(X: Any) -> Any:
    """Return the matrix read-only, as memory-mapped data are."""
    for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        array.flags.writeable = False
    return X


SPARSE = {
    "csr_array": sp.csr_array,
    "csc": lambda X: X.tocsc(),
    "coo": lambda X: X.tocoo(),
    "coo_array": sp.coo_array,
    "lil": lambda X: X.tolil(),
    "bsr": lambda X: X.tobsr(),
    "float64": lambda X: X.astype(np.float64),
    "unsorted with duplicates": shuffled,
    "64-bit indices": wide,
    "spare room": roomy,
    "read-only": lambda X: frozen(X.copy()),
    "sparse frame": lambda X: pd.DataFrame.sparse.from_spmatrix(X),
}
DENSE = {
    "float64": lambda X: X.toarray().astype(np.float64),
    "Fortran order": lambda X: np.asfortranarray(X.toarray()),
    "strided": lambda X: np.repeat(X.toarray(), 2, axis=1)[:, ::2],
    "read-only": lambda X: frozen(X.toarray()),
    "list": lambda X: X.toarray().tolist(),
    "object": lambda X: X.toarray().astype(object),
    "frame": lambda X: pd.DataFrame(X.toarray()),
    "nullable frame": lambda X: pd.DataFrame(X.toarray()).convert_dtypes(),
}
LABELS = {
    "csr_array": lambda Y: sp.csr_array(Y),
    "csc": lambda Y: Y.tocsc(),
    "coo": lambda Y: Y.tocoo(),
    "int64": lambda Y: Y.astype(np.int64),
    "bool": lambda Y: Y.astype(bool),
    "uint8": lambda Y: Y.astype(np.uint8),
    "dense": lambda Y: Y.toarray(),
    "dense int64": lambda Y: Y.toarray().astype(np.int64),
    "frame": lambda Y: pd.DataFrame(Y.toarray().astype(int)),
    "sparse frame": lambda Y: pd.DataFrame.sparse.from_spmatrix(Y),
    "64-bit indices": wide,
    "read-only": lambda Y: frozen(Y.copy()),
    "explicit zeros": lambda Y: Y + 0 * sp.csr_matrix(np.ones(Y.shape, np.float32)),
    "lists": lambda Y: _lists(Y),
    "tuples": lambda Y: tuple(tuple(row) for row in _lists(Y)),
    "sets": lambda Y: [set(row) for row in _lists(Y)],
    "arrays": lambda Y: [np.array(row) for row in _lists(Y)],
    "series": lambda Y: pd.Series(_lists(Y)),
    "lists with repeats": lambda Y: [row + row[:1] for row in _lists(Y)],
}


def _lists(Y: sp.csr_matrix) -> list[list[int]]:
    return Problem(Y, Y).lists


@features
@pytest.mark.parametrize("form", SPARSE)
def test_sparse_features(make: Make, fitted: Any, problem: Problem, form: str) -> None:
    expected = fitted.predict_topk(problem.X, k=4)
    X = SPARSE[form](problem.X)
    assert make().fit(X, problem.Y).predict_topk(X, k=4) == expected


@features
@pytest.mark.parametrize("form", DENSE)
def test_dense_features(make: Make, problem: Problem, form: str) -> None:
    dense = problem.X.toarray()
    expected = shared(make, Problem(dense, problem.Y)).predict_topk(dense, k=4)
    X = DENSE[form](problem.X)
    assert make().fit(X, problem.Y).predict_topk(X, k=4) == expected


@features
def test_sparse_and_dense_agree(make: Make, fitted: Any, problem: Problem) -> None:
    """Compare both to rounding: the order of summation may differ. Fitted on either, a model takes
    both.
    """
    sparse, dense = problem.X, problem.X.toarray()
    expected = fitted.predict_topk(sparse, k=4)
    for train in (sparse, dense):
        model = shared(make, Problem(train, problem.Y))
        for query in (sparse, dense):
            assert_close(model.predict_topk(query, k=4), expected)


@pytest.mark.parametrize("form", LABELS)
def test_labels(make: Make, fitted: Any, problem: Problem, form: str) -> None:
    expected = fitted.predict_topk(problem.X, k=4)
    model = make().fit(problem.X, LABELS[form](problem.Y))
    assert model.n_labels_ == problem.Y.shape[1]
    assert model.predict_topk(problem.X, k=4) == expected


def test_one_label_per_row(make: Make, problem: Problem) -> None:
    ids = np.arange(problem.X.shape[0]) % 5
    expected = make().fit(problem.X, [[i] for i in ids]).predict_topk(problem.X, k=3)
    for Y in (ids, ids.astype(np.int32), pd.Series(ids)):
        assert make().fit(problem.X, Y).predict_topk(problem.X, k=3) == expected


@features
def test_memory_mapped_features(make: Make, problem: Problem, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", problem.X.toarray())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    dense = problem.X.toarray()
    expected = shared(make, Problem(dense, problem.Y)).predict_topk(dense, k=3)
    assert make().fit(mapped, problem.Y).predict_topk(mapped, k=3) == expected


@pytest.mark.parametrize(
    "form", ["csr", "csc", "coo", "unsorted with duplicates", "dense", "lists"]
)
@features
def test_inputs_are_not_modified(make: Make, problem: Problem, form: str) -> None:
    converted: dict[str, tuple[Any, Any]] = {
        "csr": (problem.X.copy(), problem.Y.copy()),
        "csc": (problem.X.tocsc(), problem.Y.tocsc()),
        "coo": (problem.X.tocoo(), problem.Y.tocoo()),
        "unsorted with duplicates": (shuffled(problem.X), problem.Y.copy()),
        "dense": (problem.X.toarray(), problem.Y.toarray()),
        "lists": (problem.X.toarray().tolist(), problem.lists),
    }
    X, Y = converted[form]
    before = _bytes(X), _bytes(Y)
    make().fit(X, Y).predict_topk(X, k=3)
    assert (_bytes(X), _bytes(Y)) == before


def _bytes(data: Any) -> bytes:
    """Everything the user can see of the data; not SciPy's private notes on it."""
    if sp.issparse(data):
        names = ("data", "row", "col") if data.format == "coo" else ("data", "indices", "indptr")
        return pickle.dumps(
            [(getattr(data, n).dtype.str, getattr(data, n).tobytes()) for n in names]
        )
    return pickle.dumps(data)
