"""Products of sparse and dense matrices, at every width around those of the registers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longtail._native import core
from longtail._products import PackedRows, times_dense

WIDTHS = [1, 3, 4, 5, 8, 15, 16, 17, 31, 33, 48, 63, 64, 100, 127, 128, 129, 200, 270]


@pytest.fixture(params=["portable", "avx2", "avx512"])
def isa(request: pytest.FixtureRequest) -> object:
    before = core.active_isa()
    try:
        core.set_isa(request.param)
    except ValueError:
        pytest.skip(f"this machine has no {request.param}")
    yield request.param
    core.set_isa(before)


@pytest.mark.parametrize("width", WIDTHS)
def test_times_dense_agrees_with_numpy(isa: str, width: int) -> None:
    rng = np.random.default_rng(width)
    X = sp.random(150, 90, 0.1, "csr", np.float32, rng)
    X.data[X.indptr[3] : X.indptr[4]] = 0
    X.eliminate_zeros()
    dense = rng.standard_normal((90, width)).astype(np.float32)
    bias = rng.standard_normal(width).astype(np.float32)
    expected = X.toarray().astype(np.float64) @ dense
    for rows in (X, X.toarray()):
        found = times_dense(rows, dense, 1)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_array_equal(found, times_dense(rows, dense, 3))
        with_bias = times_dense(rows, dense, 2, bias=bias, relu=True)
        np.testing.assert_allclose(with_bias, np.maximum(expected + bias, 0), atol=1e-5)
    np.testing.assert_array_equal(times_dense(X, dense, 1), times_dense(X.toarray(), dense, 1))


def test_a_column_does_not_depend_on_the_others(isa: str) -> None:
    """Tiles of different widths sum alike."""
    rng = np.random.default_rng(0)
    X = sp.random(40, 60, 0.3, "csr", np.float32, rng)
    dense = rng.standard_normal((60, max(WIDTHS))).astype(np.float32)
    whole = times_dense(X, dense, 1)
    for width in WIDTHS:
        np.testing.assert_array_equal(times_dense(X, dense[:, :width], 1), whole[:, :width])


def test_nothing_to_multiply() -> None:
    for n, m, width in ((0, 3, 2), (3, 0, 2), (3, 2, 0)):
        X = sp.csr_matrix((n, m), dtype=np.float32)
        assert times_dense(X, np.ones((m, width), np.float32), 2).shape == (n, width)
    assert not times_dense(sp.csr_matrix((3, 0), dtype=np.float32), np.ones((0, 20)), 1).any()


@pytest.mark.parametrize(
    ("n_rows", "d"),
    [(1, 4), (40, 4), (150_001, 64)],  # of the last, threads share a query's rows
)
def test_the_best_products_for_any_number_of_threads(n_rows: int, d: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(-3, 4, size=(n_rows, d)).astype(np.float32)  # with many ties
    queries, bias = rng.integers(-3, 4, size=(3, d)).astype(np.float32), rng.integers(0, 2, n_rows)
    bias, packed = bias.astype(np.float32), PackedRows(rows)
    ids, values = packed.top(queries, 9, 1, bias)
    scores = queries @ rows.T + bias
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :9]
    np.testing.assert_array_equal(ids[:, : expected.shape[1]], expected)
    for threads in (2, 3, 8):
        for mine, other in zip((ids, values), packed.top(queries, 9, threads, bias), strict=True):
            np.testing.assert_array_equal(mine, other)
