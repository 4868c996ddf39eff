"""The code of near rows: which pairs, projections against exact ones, an objective that falls."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longtail._native import core
from longtail._products import pattern_products
from longtail.codes import NeighborCode, SVDCode
from longtail.codes.low_rank_plus_sparse import project


def make_labels(n: int = 120, L: int = 60, seed: int = 0) -> sp.csr_matrix:
    rng = np.random.default_rng(seed)
    share = 0.5 / np.arange(1, L + 1) ** 0.7
    return sp.csr_matrix((rng.random((n, L)) < share).astype(np.float32))


def make_symmetric(n: int, seed: int = 0, density: float = 0.05) -> sp.csr_matrix:
    upper = sp.random(n, n, density, "csr", np.float32, np.random.default_rng(seed))
    upper.data -= np.float32(0.5)
    return sp.csr_matrix(upper + upper.T)


def nearest(A: np.ndarray, c: int) -> np.ndarray:
    """The best approximation of rank c without negative eigenvalues."""
    values, vectors = np.linalg.eigh(A)
    return (vectors[:, -c:] * np.maximum(values[-c:], 0)) @ vectors[:, -c:].T  # type: ignore[no-any-return]


def projected(Z: np.ndarray, S: sp.csr_matrix, n_powers: int, seed: int = 0) -> np.ndarray:
    return project(Z, S, n_powers=n_powers, rng=np.random.default_rng(seed), n_threads=2)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (70, 5), (130, 33), (65, 100)])
def test_pattern_products_agree_with_numpy(shape: tuple[int, int]) -> None:
    n, c = shape
    rows = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    pattern = make_symmetric(n, density=0.2) if n > 1 else sp.csr_matrix(np.ones((n, n)))
    i, j = pattern.nonzero()
    found = pattern_products(pattern, rows, 1)
    np.testing.assert_allclose(found, (rows[i] * rows[j]).sum(axis=1), atol=1e-5 * max(c, 1))
    np.testing.assert_array_equal(found, pattern_products(pattern, rows, 3))


def test_pattern_product_refuses_what_does_not_fit() -> None:
    rows = np.ones((2, 3), np.float32)
    ptr, ids = np.array([0, 1, 2]), np.array([1, 0], np.int32)
    for args, message in (
        ((ptr, ids, 2, rows[:1], rows), "do not fit"),
        ((ptr, ids, 3, rows, rows), "do not fit"),
        ((ptr, ids, 2, rows, np.ones((2, 4), np.float32)), "differ in their width"),
        ((ptr[:2], ids, 2, rows[:1], rows), "disagree"),
        ((np.array([0, 3, 2]), ids, 2, rows, rows), "must not descend"),
        ((np.zeros(0, np.int64), ids, 2, rows, rows), "at least one entry"),
    ):
        with pytest.raises(ValueError, match=message):
            core.pattern_product(*args, 1)
    for outside in (-1, 2):
        with pytest.raises(IndexError, match="outside the pattern"):
            core.pattern_product(ptr, np.array([0, outside], np.int32), 2, rows, rows, 2)


def test_projection_approaches_the_exact_one() -> None:
    """More powers, less error; a small matrix is done exactly."""
    rng = np.random.default_rng(0)
    Z = 0.1 * rng.standard_normal((500, 6)).astype(np.float32)
    S = make_symmetric(500)
    A = Z.astype(np.float64) @ Z.T + S.toarray()
    best = np.linalg.norm(A - nearest(A, 6))
    errors = [
        np.linalg.norm(A - found @ found.T) / best - 1
        for found in (projected(Z, S, powers) for powers in (1, 3, 12, 40))
    ]
    assert errors[0] > 2 * errors[1] > 0 and errors[1] > 2 * errors[2]
    assert errors[2:] == pytest.approx([0, 0], abs=1e-4)


@pytest.mark.parametrize("n_powers", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_projection_is_never_farther_than_the_start(n_powers: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((300, 8)).astype(np.float32) * rng.exponential(1, 8).astype(np.float32)
    Z[:, rng.integers(8)] = 0
    S = make_symmetric(300, seed)
    A = Z.astype(np.float64) @ Z.T + S.toarray()
    for _ in range(3):
        after = projected(Z, S, n_powers, seed)
        assert np.linalg.norm(A - after @ after.T) <= (1 + 1e-6) * np.linalg.norm(A - Z @ Z.T)
        Z = after
        A = Z.astype(np.float64) @ Z.T + S.toarray()


def test_projection_sees_what_the_start_is_orthogonal_to() -> None:
    """Z spans an invariant subspace of S; the large eigenvalues are those of the other one."""
    Z = np.zeros((400, 3), np.float32)
    Z[:200] = np.random.default_rng(0).standard_normal((200, 3)) * 0.1
    S = sp.block_diag([sp.csr_matrix((200, 200)), sp.diags([20.0, 15.0, 10.0] + [0.1] * 197)])
    found = projected(Z, sp.csr_matrix(S, dtype=np.float32), 2)
    values = np.linalg.eigvalsh(found.T @ found)[::-1]
    np.testing.assert_allclose(values, [20, 15, 10], rtol=1e-3)


def test_negative_eigenvalues_have_no_factor() -> None:
    Z = np.zeros((200, 3), np.float32)
    assert not projected(Z, sp.csr_matrix(-sp.identity(200, np.float32)), 1).any()
    assert not projected(Z, sp.csr_matrix((200, 200), dtype=np.float32), 2).any()
    one = projected(Z, sp.csr_matrix(sp.diags([-9.0] * 199 + [4.0]), dtype=np.float32), 4)
    np.testing.assert_allclose(np.abs(one[-1]).max(), 2, atol=1e-4)
    np.testing.assert_allclose(one[:-1], 0, atol=1e-3)


def test_pairs_are_near_from_either_side() -> None:
    Y = make_labels(90, 40)
    gram = (Y @ Y.T).toarray()
    chosen = np.zeros(gram.shape, bool)
    for i, row in enumerate(gram):
        order = np.lexsort((np.arange(90), -row))[:7]
        chosen[i, order[row[order] > 0]] = True
    expected = np.where(chosen | chosen.T, gram, 0)
    np.testing.assert_array_equal(NeighborCode(n_pairs=7)._similarities(Y).toarray(), expected)
    for everything in (None, 90, 1000):
        found = NeighborCode(n_pairs=everything)._similarities(Y)
        np.testing.assert_array_equal(found.toarray(), gram)


@pytest.mark.parametrize("n", [70, 600])
def test_one_step_over_all_pairs_is_the_svd(n: int) -> None:
    """Card 1b: Omega = all pairs, step 1, from nothing. Exact for few rows, in blocks for more."""
    Y = sp.csr_matrix(np.hstack([make_labels(n, 30).toarray(), np.ones((n, 1), np.float32)]))
    plain = SVDCode(n_components=6, n_passes=8).fit(Y).codes_
    near = NeighborCode(n_components=6, n_pairs=None, n_steps=1, start="zero", n_passes=8).fit(Y)
    np.testing.assert_allclose(near.codes_ @ near.codes_.T, plain @ plain.T, atol=2e-2)


@pytest.mark.parametrize("start", ["svd", "zero"])
@pytest.mark.parametrize("step", [1.0, 0.3])
@pytest.mark.parametrize("n", [40, 200, 900])
def test_the_objective_never_rises(start: str, step: float, n: int) -> None:
    Y = make_labels(n, 50)
    code = NeighborCode(n_components=8, n_pairs=10, n_steps=6, step=step, start=start).fit(Y)
    assert (np.diff(code.objective_) <= 1e-6 * code.objective_[0]).all()
    assert code.objective_[-1] < 0.9 * code.objective_[0]
    assert code.codes_.shape == (n, 8) and code.label_vectors_.shape == (50, 8)


def test_steps_agree_with_exact_projections() -> None:
    Y = make_labels(700, 60)
    code = NeighborCode(n_components=10, n_pairs=15, n_steps=5)
    wanted = code._similarities(Y).toarray()
    Z = SVDCode(n_components=10).fit(Y).codes_.astype(np.float64)
    M, expected = Z @ Z.T, []
    for _ in range(6):
        gap = np.where(wanted > 0, wanted - M, 0)
        expected.append((gap**2).sum())
        M = nearest(M + gap, 10)
    np.testing.assert_allclose(code.fit(Y).objective_, expected, rtol=3e-3)


def test_neighbor_code_keeps_near_similarities_better() -> None:
    Y = make_labels(300, 80)
    plain = SVDCode(n_components=8).fit(Y)
    near = NeighborCode(n_components=8, n_pairs=20).fit(Y)
    wanted = near._similarities(Y).tocoo()

    def error(Z: np.ndarray) -> float:
        products = np.einsum("ij,ij->i", Z[wanted.row], Z[wanted.col])
        return float(((wanted.data - products) ** 2).sum())

    assert error(near.codes_) < error(plain.codes_)
    assert error(near.codes_) == pytest.approx(near.objective_[-1], rel=1e-3)


def test_threads_do_not_change_the_code() -> None:
    Y = make_labels(1500, 200)
    one, three = (NeighborCode(n_components=12, n_steps=3, n_jobs=jobs).fit(Y) for jobs in (1, 3))
    np.testing.assert_array_equal(one.codes_, three.codes_)
    np.testing.assert_array_equal(one.objective_, three.objective_)
    np.testing.assert_array_equal(one.label_vectors_, three.label_vectors_)


def test_rows_without_labels_and_soft_labels() -> None:
    Y = make_labels(300, 20)
    Y.data *= np.random.default_rng(0).random(Y.nnz, np.float32)
    Y = sp.vstack([Y, sp.csr_matrix((50, 20), dtype=np.float32)])
    code = NeighborCode(n_components=5, n_pairs=9, n_steps=4).fit(Y)
    np.testing.assert_allclose(code.codes_[300:], 0, atol=1e-4)
    assert (np.diff(code.objective_) <= 1e-6 * code.objective_[0]).all()
    nothing = NeighborCode(n_components=3, n_steps=2).fit(sp.csr_matrix((80, 6), dtype=np.float32))
    assert not nothing.codes_.any() and not nothing.objective_.any()


def test_refusals_of_the_neighbor_code() -> None:
    Y = make_labels()
    for params, message in (
        ({"step": 2.0}, "step"),
        ({"step": float("nan")}, "step"),
        ({"start": "random"}, "start.*random"),
        ({"n_pairs": 0}, "n_pairs"),
        ({"n_steps": 0}, "n_steps"),
    ):
        with pytest.raises(ValueError, match=message):
            NeighborCode(**params).fit(Y)


def test_nothing_is_left_to_fit_at_full_rank() -> None:
    """With c the rank of Y the SVD keeps every similarity, and no step is taken."""
    Y = make_labels(300, 40)
    full, svd = NeighborCode(n_components=40, n_pairs=20).fit(Y), SVDCode(n_components=40).fit(Y)
    assert len(full.objective_) == 1
    np.testing.assert_array_equal(full.codes_, svd.codes_)
    assert len(NeighborCode(n_components=10, n_pairs=20, n_steps=4).fit(Y).objective_) == 5
