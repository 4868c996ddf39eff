"""Kernels of stored output layers against NumPy, with every instruction set of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from longtail._native import core
from longtail.deep.answers import FanInRows, OutputArrays, ShortRows, rounded

SETS = ["portable", "avx2", "avx512"]


@pytest.fixture(params=SETS)
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    before = core.active_isa()
    try:
        core.set_isa(request.param)
    except ValueError:
        pytest.skip(f"no {request.param} here")
    yield request.param
    core.set_isa(before)


def numbers(raw: np.ndarray) -> np.ndarray:
    """What raw weights stand for, bit by bit."""
    if raw.dtype == np.uint16:
        return (raw.astype(np.uint32) << 16).view(np.float32)
    sign = np.where(raw & 0x80, -1.0, 1.0)
    exponent, mantissa = (raw >> 3) & 0xF, raw & 0x7
    normal = (1 + mantissa / 8) * 2.0 ** (exponent.astype(int) - 7)
    return (sign * np.where(exponent == 0, mantissa * 2.0**-9, normal)).astype(np.float32)


def best(z: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-z, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("precision", ["bfloat16", "float8"])
@pytest.mark.parametrize("shape", [(1, 1), (15, 7), (16, 64), (203, 70)])
def test_rows_of_few_bits(isa: str, precision: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    rows = rounded(rng.normal(0, 0.1, shape).astype(np.float32), precision)
    queries = rng.normal(size=(70, shape[1])).astype(np.float32)
    bias = rng.normal(size=shape[0]).astype(np.float32)
    z = queries @ numbers(rows).T + bias
    for threads in (1, 3):
        found = ShortRows(rows).products(queries, threads, bias)
        np.testing.assert_allclose(found, z, rtol=1e-4, atol=1e-5)
        ids, scores = ShortRows(rows).top(queries, 3, threads, bias)
        wanted = best(found, 3)
        np.testing.assert_array_equal(ids[:, : wanted.shape[1]], wanted)
        assert (ids[:, wanted.shape[1] :] == -1).all()
        np.testing.assert_array_equal(
            scores[:, : wanted.shape[1]], np.take_along_axis(found, wanted, 1)
        )


def test_every_code_of_eight_bits(isa: str) -> None:
    codes = np.setdiff1d(np.arange(256), [0x7F, 0xFF]).astype(np.uint8)[:, None]
    found = ShortRows(codes).products(np.ones((1, 1), np.float32), 1)
    np.testing.assert_array_equal(found[0], numbers(codes)[:, 0])


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
@pytest.mark.parametrize(("f", "labels", "rows"), [(1, 1, 1), (5, 17, 16), (9, 300, 37)])
def test_few_weights(isa: str, kind: Any, f: int, labels: int, rows: int) -> None:
    rng = np.random.default_rng(1)
    inputs = 24
    values = rng.normal(size=(f, labels)).astype(np.float32)
    index = rng.integers(0, inputs, (f, labels)).astype(kind)
    dense = np.zeros((labels, inputs), np.float32)
    np.add.at(dense, (np.broadcast_to(np.arange(labels), index.shape), index.astype(int)), values)
    x = rng.normal(size=(rows, inputs)).astype(np.float32)
    bias = rng.normal(size=labels).astype(np.float32)
    layer = FanInRows(values, index, inputs)
    found = layer.products(x, 2, bias)
    np.testing.assert_allclose(found, x @ dense.T + bias, rtol=1e-4, atol=1e-5)
    wanted = best(found, 4)
    np.testing.assert_array_equal(layer.top(x, 4, 2, bias)[0][:, : wanted.shape[1]], wanted)

    begin, end = labels // 3, labels
    g = rng.normal(size=(rows, end - begin)).astype(np.float32)
    g[:, ::2] = 0
    results = []
    for threads in (1, 3):
        dx = np.ones_like(x)
        dw = layer.layer.gradients(x, g, begin, end, dx, threads)
        results.append((dx, dw))
    np.testing.assert_allclose(results[0][0], 1 + g @ dense[begin:end], rtol=1e-4, atol=1e-4)
    of_dense = (g.T @ x).T
    wanted_dw = np.take_along_axis(of_dense, index[:, begin:end].astype(int), axis=0)
    np.testing.assert_allclose(results[0][1], wanted_dw, rtol=1e-4, atol=1e-4)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_does_not_fit_is_refused() -> None:
    values, index = np.ones((2, 3), np.float32), np.zeros((2, 3), np.uint16)
    x = np.ones((1, 4), np.float32)
    with pytest.raises(ValueError, match="same shape"):
        core.FanInLayer(values, index[:, :2].copy(), 4)
    with pytest.raises(ValueError, match="below 4"):
        core.FanInLayer(values, index + np.uint16(4), 4)
    with pytest.raises(ValueError, match="below 4"):
        core.FanInLayer(values, np.full((2, 3), -1, np.int32), 4)
    with pytest.raises(ValueError, match="uint16 or int32"):
        core.FanInLayer(values, index.astype(np.int64), 4)
    layer = core.FanInLayer(values, index, 4)
    with pytest.raises(ValueError, match="one number per input"):
        layer.top(None, x[:, :3].copy(), 1, 1)
    with pytest.raises(ValueError, match="within the layer"):
        layer.scores(None, x, 1, 4, 1)
    with pytest.raises(ValueError, match="16 or 8 bits"):
        core.top_short_rows(np.ones((2, 4), np.float32), None, x, 1, 1)
    with pytest.raises(ValueError, match="differ in their width"):
        core.short_products(np.ones((2, 3), np.uint8), None, x, 1)


def test_some_labels_of_each_kind() -> None:
    rng = np.random.default_rng(2)
    x, ids = rng.normal(size=(5, 8)).astype(np.float32), np.array([7, 2])
    dense = rng.normal(size=(10, 8)).astype(np.float32)
    index = rng.integers(0, 8, (3, 10)).astype(np.uint16)
    bias = np.zeros(10, np.float32)
    for arrays in (
        OutputArrays(dense, bias),
        OutputArrays(rounded(dense, "bfloat16"), bias),
        OutputArrays(rounded(dense, "float8"), bias),
        OutputArrays(dense.T[:3].copy(), bias, index, width=8),
    ):
        whole, some = arrays.rows().products(x, 1), arrays.rows(ids).products(x, 1)
        np.testing.assert_array_equal(some, whole[:, ids])
