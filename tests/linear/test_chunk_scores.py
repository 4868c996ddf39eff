"""Scores of chunks against NumPy, on every instruction set: the same bits on all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear_cases import make_rows

import longtail as lt
from longtail._native import core, csr_args
from longtail.linear.search.layer import Layer

NAMES = ["portable", "avx2", "avx512"]
AVAILABLE = NAMES[: NAMES.index(core.best_isa()) + 1]


@pytest.fixture(scope="module", autouse=True)
def isa() -> Iterator[None]:
    before = core.active_isa()
    yield
    core.set_isa(before)


def scores(layer: Layer, n_features: int, X: sp.csr_matrix, n_threads: int = 1) -> np.ndarray:
    transforms, powers = np.zeros(1, np.int32), np.ones(1, np.int32)
    searcher = core.BeamSearcher([layer.arrays], transforms, powers, None, n_features)
    out: np.ndarray = searcher.scores_sparse(csr_args(X), False, n_threads)
    return out


def random_rows(n: int, d: int, density: float, seed: int) -> sp.csr_matrix:
    rows = sp.random(n, d, density, format="csr", dtype=np.float32, random_state=seed)
    rows.sort_indices()
    return rows


@given(
    n_labels=st.integers(1, 70),
    n_features=st.integers(1, 700),
    weights=st.sampled_from([0.0, 0.003, 0.05, 0.4, 1.0]),
    queries=st.sampled_from([0.02, 0.3, 1.0]),
    precision=st.sampled_from(["float32", "bf16", "int8"]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_entry_is_found_on_every_instruction_set(
    n_labels: int, n_features: int, weights: float, queries: float, precision: str, seed: int
) -> None:
    W = random_rows(n_labels, n_features, weights, seed)
    X = random_rows(9, n_features, queries, seed + 1)
    bias = np.random.default_rng(seed).normal(size=n_labels).astype(np.float32)
    layer = Layer.from_csr(W, bias, np.array([0, n_labels])).with_precision(precision)
    rounded = layer.weights(n_features).toarray().astype(np.float64)
    expected = X.toarray().astype(np.float64) @ rounded.T + bias
    found = []
    for name in AVAILABLE:
        core.set_isa(name)
        found.append(scores(layer, n_features, X))
        np.testing.assert_allclose(found[-1], expected, rtol=1e-4, atol=1e-4)
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize("k", [1, 7, 300])
def test_answers_are_the_same_bits_everywhere(k: int) -> None:
    X, Y = make_rows(n=300, n_labels=300)
    model = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[5, 20]), beam=6).fit(X, Y)
    found: list[Any] = []
    for name in AVAILABLE:
        core.set_isa(name)
        for jobs in (1, 3):
            found.append(model.set_params(n_jobs=jobs).predict_topk(X, k=k))
        alone = [model.predict_topk(X[i], k=k) for i in range(20)]
        for i, top in enumerate(alone):
            assert np.array_equal(top.indices[0], found[-1].indices[i])
            assert np.array_equal(top.scores[0], found[-1].scores[i])
    assert all(top == found[0] for top in found[1:])


def test_few_queries_are_shared_among_threads() -> None:
    assert core.search_block(100, 4) == 8  # 13 blocks for 4 threads
    assert core.search_block(1000, 4) == 62
    assert core.search_block(10**6, 4) == 2048
    assert core.search_block(3, 64) == 8
