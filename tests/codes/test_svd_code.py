"""The SVD and the codes made of it: identities, the exact case, oracles, approximate search."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.codes import SVDCode, truncated_svd
from longtail.codes.inverted_lists import InvertedLists


def make_labels(n: int = 120, L: int = 60, seed: int = 0) -> sp.csr_matrix:
    rng = np.random.default_rng(seed)
    share = 0.5 / np.arange(1, L + 1) ** 0.7
    return sp.csr_matrix((rng.random((n, L)) < share).astype(np.float32))


@pytest.mark.parametrize("shape", [(120, 60), (60, 120), (50, 50), (400, 30)])
def test_truncated_svd_agrees_with_the_full_one(shape: tuple[int, int]) -> None:
    Y = make_labels(*shape)
    U, s, V = truncated_svd(Y, 10)
    expected = np.linalg.svd(Y.toarray(), compute_uv=False)[:10]
    np.testing.assert_allclose(s, expected, rtol=1e-4)
    np.testing.assert_allclose(U.T @ U, np.eye(10), atol=1e-4)
    np.testing.assert_allclose(V.T @ V, np.eye(10), atol=1e-4)
    np.testing.assert_allclose(Y @ V, U * s, atol=2e-3)


def test_more_components_than_the_rank() -> None:
    Y = sp.csr_matrix(np.outer([1, 1, 0, 1], [1, 0, 1]).astype(np.float32))
    U, s, V = truncated_svd(Y, 3)
    np.testing.assert_allclose(s, [np.sqrt(6), 0, 0], atol=1e-5)
    np.testing.assert_allclose(U * s @ V.T, Y.toarray(), atol=1e-5)
    for empty in truncated_svd(sp.csr_matrix((4, 3)), 2):
        assert (empty == 0).all() and np.isfinite(empty).all()


def test_threads_do_not_change_the_svd() -> None:
    Y = make_labels(500, 200)
    for one, two in zip(
        truncated_svd(Y, 20, n_threads=1), truncated_svd(Y, 20, n_threads=3), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_rank_identity() -> None:
    """c = rank(Y): ZZ^T = YY^T; below, the error is that of the singular values left out."""
    Y = make_labels()
    dense = Y.toarray()
    gram = dense @ dense.T
    Z = SVDCode(n_components=60).fit(Y).codes_
    np.testing.assert_allclose(Z @ Z.T, gram, atol=1e-3)
    s = np.linalg.svd(dense, compute_uv=False)
    for c in (5, 20):
        Z = SVDCode(n_components=c).fit(Y).codes_
        expected = np.sqrt((s[c:] ** 4).sum())
        assert np.linalg.norm(gram - Z @ Z.T) == pytest.approx(expected, rel=1e-3)


def test_exact_recovery_case() -> None:
    """Rows (1,1,0), (1,0,0), (0,0,1) at full rank, query Z_0: s = (2,1,0), f = (3,2,0)."""
    code = SVDCode(n_components=3, n_neighbors=2).fit([[0, 1], [0], [2]])
    rows, s = code.neighbors(code.codes_[:1])
    assert rows.tolist() == [[0, 1]]
    np.testing.assert_allclose(s, [[2, 1]], atol=1e-5)
    top = code.decode(code.codes_[:1], k=3)
    assert top.indices.tolist() == [[0, 1, -1]]
    np.testing.assert_allclose(top.scores[0, :2], [3, 2], atol=1e-5)
    every = code.set_params(n_neighbors=3).neighbors(code.codes_[:1])[1]
    np.testing.assert_allclose(every, [[2, 1, 0]], atol=1e-5)


def test_votes_of_dissimilar_rows_count_against() -> None:
    """The paper does not clip: a row of negative similarity votes against its labels."""
    code = SVDCode(n_components=2, n_neighbors=2).fit([[0], [1]])
    query = code.encode([[0], [1]])[0] - 2 * code.encode([[0], [1]])[1]
    np.testing.assert_allclose(code.decode(query[None], 2).scores, [[1, -2]], atol=1e-5)
    clipped = code.set_params(weights="clipped").decode(query[None], 2)
    np.testing.assert_allclose(clipped.scores, [[1, 0]], atol=1e-5)


@pytest.mark.parametrize("recovery", ["inner", "cosine", "labels"])
def test_recovery_agrees_with_numpy(recovery: str) -> None:
    Y = make_labels(300, 80)
    code = SVDCode(n_components=15, n_neighbors=7, recovery=recovery).fit(Y)
    queries = np.random.default_rng(3).normal(size=(33, 15)).astype(np.float32)
    if recovery == "labels":
        full = queries @ code.label_vectors_.T
    else:
        s = queries @ code.codes_.T
        if recovery == "cosine":
            lengths = np.linalg.norm(code.codes_, axis=1) + 1e-30
            s = s / lengths / np.linalg.norm(queries, axis=1, keepdims=True)
        empty = np.diff(Y.indptr) == 0
        assert empty.any() and not s[:, empty].any(), "a row without labels resembles nothing"
        best = np.argsort(-s, axis=1, kind="stable")[:, :7]
        full = np.stack([s[q, best[q]] @ Y[best[q]].toarray() for q in range(len(queries))])
    top = code.decode(queries, 1)
    rows = np.arange(len(queries))
    np.testing.assert_allclose(top.scores[:, 0], full[rows, top.indices[:, 0]], rtol=1e-3)
    np.testing.assert_allclose(top.scores[:, 0], full.max(axis=1), rtol=1e-3, atol=1e-4)


def test_oracle_rises_with_the_components() -> None:
    Y, held_out = make_labels(600, 60), make_labels(200, 60, seed=1)
    hits = []
    for c in (2, 10, 60):
        code = SVDCode(n_components=c).fit(Y)
        top = code.decode(code.encode(held_out), 1)
        rows = np.flatnonzero(np.diff(held_out.indptr))
        hits.append(np.asarray(held_out[rows, top.indices[rows, 0]]).mean())
    assert hits[0] < hits[1] <= hits[2] > 0.95


def test_inverted_lists_have_a_high_recall_and_all_of_them_are_exact() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(50, 16))
    rows = (centres[rng.integers(0, 50, 4000)] + rng.normal(0, 0.3, (4000, 16))).astype(np.float32)
    queries = rows[:200] + rng.normal(0, 0.1, (200, 16)).astype(np.float32)
    lists = InvertedLists(rows, n_threads=2)
    exact = np.argsort(-(queries @ rows.T), axis=1)[:, :25]
    few, _ = lists.search(queries, 25, 10, 2)
    recall = np.mean([len(set(a) & set(b)) / 25 for a, b in zip(exact, few, strict=True)])
    assert recall > 0.9
    everything, values = lists.search(queries, 25, len(lists.centroids), 1)
    np.testing.assert_array_equal(np.sort(everything), np.sort(exact))
    assert (np.diff(values, axis=1) <= 0).all()


def test_approximate_recovery_answers_alike() -> None:
    Y = make_labels(2000, 60)
    code = SVDCode(n_components=20, recovery="cosine").fit(Y)
    queries = code.codes_[:300]
    exact = code.decode(queries, 1).indices
    assert (code.set_params(n_probes=8).decode(queries, 1).indices == exact).mean() > 0.9


def test_refusals() -> None:
    Y = make_labels()
    for params, message in (
        ({"recovery": "nearest"}, "recovery.*nearest"),
        ({"weights": "none"}, "weights.*none"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_components": -1}, "n_components"),
    ):
        with pytest.raises(ValueError, match=message):
            SVDCode(**params).fit(Y)
    with pytest.raises(ValueError, match=r"\b4\b.*\(2, 5\)"):
        SVDCode(n_components=4).fit(Y).decode(np.zeros((2, 5)), 1)


def test_neighbors_reads_what_decode_reads() -> None:
    code = SVDCode(n_components=2, n_neighbors=2).fit([[0, 1], [0], [2]])
    expected = code.neighbors(code.codes_[:1])
    found = code.neighbors(code.codes_[:1].astype(np.float64).tolist())
    np.testing.assert_array_equal(found[0], expected[0])
    with pytest.raises(ValueError, match=r"\b2\b.*\(1, 3\)"):
        code.neighbors(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="SVDCode"):
        SVDCode().neighbors(np.zeros((1, 3)))
