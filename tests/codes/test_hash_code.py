"""Hashing, encoding and decoding: the exact cases, and a ten-line reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.codes import HashCode
from longtail.codes.hash_code import AGGREGATIONS, default_size


def values_of(scores: np.ndarray, link: str) -> np.ndarray:
    z = scores.astype(np.float64)
    if link == "sigmoid":
        return 1 / (1 + np.exp(-z))
    if link == "hinge":
        return np.exp(-(np.maximum(0, 1 - z) ** 2))
    if link == "softmax":
        e = np.exp(z - z.max(axis=2, keepdims=True))
        return e / e.sum(axis=2, keepdims=True)
    return z


def reference(code: HashCode, scores: np.ndarray) -> np.ndarray:
    """Scores of all labels, (n, L), by the definition."""
    R, B = code.n_repetitions_, code.n_buckets_
    link = "identity" if code.aggregation == "logits" else code.link
    values = values_of(scores, link)
    of_label = np.stack([values[:, r, code.table_[:, r]] for r in range(R)])
    if code.aggregation == "logits":
        return of_label.sum(axis=0)
    if code.aggregation in ("min", "median"):
        return getattr(np, code.aggregation)(of_label, axis=0)
    mean = of_label.mean(axis=0)
    return B / (B - 1) * (mean - 1 / B) if code.aggregation == "unbiased" else mean


def test_murmur_is_that_of_scikit_learn() -> None:
    from sklearn.utils import murmurhash3_32

    code = HashCode(n_buckets=97, n_repetitions=5, random_state=3).fit(1000)
    for r, seed in enumerate(code.seeds_.tolist()):
        expected = [
            murmurhash3_32(i, seed=int(np.uint32(seed)), positive=True) % 97 for i in range(1000)
        ]
        np.testing.assert_array_equal(code.table_[:, r], expected)


def test_count_min_case() -> None:
    """The sketch of the stream ABCAACD, on the poster of the paper."""
    table = [[1, 6, 3, 1], [1, 2, 4, 6], [3, 4, 1, 6], [6, 2, 4, 1]]
    code = HashCode.from_table(table, 7)
    stream = [0, 1, 2, 0, 0, 2, 3]
    counts = np.zeros((4, 7))
    for label in stream:
        row = code.encode(sp.csr_matrix(([1.0], ([0], [label])), shape=(1, 4)))
        counts = counts + row.toarray().reshape(4, 7)
    expected = np.zeros((4, 7))
    expected[0, [1, 3, 6]] = 4, 2, 1
    expected[1, [2, 4, 6]] = 2, 2, 3
    expected[2, [1, 3, 4]] = 2, 3, 2
    expected[3, [1, 6]] = 4, 3
    np.testing.assert_array_equal(counts, expected)
    for aggregation, answer in (("min", [3, 2, 2, 1]), ("mean", [3.5, 2.75, 2.25, 2.25])):
        code.set_params(aggregation=aggregation)
        top = code.decode(counts[None], k=4)
        np.testing.assert_array_equal(top.to_csr().toarray()[0], answer)
        assert top.indices[0].tolist() == [0, 1, 2, 3]  # ties to the smaller label


def test_unbiased_over_all_hash_functions() -> None:
    """m = 7, B = 3: the mean over all 3^7 hashes of the corrected estimate is the truth."""
    p = np.random.default_rng(0).dirichlet(np.ones(7))
    total = np.zeros(7)
    for buckets in itertools.product(range(3), repeat=7):
        table = np.array(buckets)
        P = np.bincount(table, p, minlength=3)
        total += 3 / 2 * (P[table] - 1 / 3)
    np.testing.assert_allclose(total / 3**7, p, atol=1e-14)
    # And the decoder computes that estimate.
    table = np.array(list(itertools.product(range(3), repeat=7))[77]).reshape(7, 1)
    code = HashCode.from_table(table, 3, aggregation="unbiased")
    P = np.bincount(table[:, 0], p, minlength=3).reshape(1, 1, 3)
    found = code.decode(P, k=7).to_csr().toarray()[0]
    np.testing.assert_allclose(found, 1.5 * (P[0, 0][table[:, 0]] - 1 / 3), atol=1e-6)


def test_encoding_is_a_logical_or() -> None:
    code = HashCode.from_table([[0, 1], [0, 0], [1, 1]], 2)
    Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 0, 0], [0.25, 0.5, 0]], np.float32))
    expected = [[1, 0, 1, 1], [0, 0, 0, 0], [0.5, 0, 0.5, 0.25]]
    np.testing.assert_array_equal(code.encode(Y).toarray(), expected)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 300),
    st.integers(1, 9),
    st.integers(2, 40),
    st.integers(1, 40),
    st.sampled_from([*AGGREGATIONS]),
    st.sampled_from(["identity", "sigmoid", "hinge", "softmax"]),
    st.integers(0, 2**32),
)
def test_decoding_agrees_with_the_definition(
    L: int, R: int, B: int, k: int, aggregation: str, link: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    code = HashCode(
        n_buckets=B, n_repetitions=R, aggregation=aggregation, link=link, random_state=seed
    ).fit(L)
    scores = rng.normal(-2, 2, (37, R, B)).astype(np.float32)
    full = reference(code, scores)
    k = min(k, L)
    pruned, scanned = code.decode(scores, k), code.decode(scores, k, prune=False)
    assert pruned == scanned
    best = -np.sort(-full, axis=1)[:, :k]
    np.testing.assert_allclose(pruned.scores, best, rtol=2e-5, atol=2e-5)
    own = np.take_along_axis(full, pruned.indices, axis=1)
    np.testing.assert_allclose(pruned.scores, own, rtol=2e-5, atol=2e-5)


def test_scanning_many_queries_of_which_some_are_not_finite() -> None:
    code = HashCode(n_buckets=50, n_repetitions=5, aggregation="logits").fit(3_000)
    rng = np.random.default_rng(3)
    scores = rng.normal(0, [[[1e-3]], [[1.0]], [[1e4]]] * 30, (90, 5, 50)).astype(np.float32)
    scores[7] = 0.25  # all equal: the smallest ids win
    expected = reference(code, scores)
    scores[3, 1, 2], scores[40, 0, 0] = np.nan, np.inf
    top = code.decode(scores, 4, prune=False)
    clean = np.setdiff1d(np.arange(90), [3, 40])
    best = -np.sort(-expected, axis=1)[:, :4]
    np.testing.assert_allclose(top.scores[clean], best[clean], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(top.indices[7], [0, 1, 2, 3])
    assert np.isin(np.flatnonzero(code.table_[:, 0] == 0)[:4], top.indices[40]).all()
    assert not (code.table_[top.indices[3], 1] == 2).any()


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_pruning_and_scanning_agree_where_few_buckets_are_likely(aggregation: str) -> None:
    code = HashCode(n_buckets=500, n_repetitions=6, link="sigmoid", aggregation=aggregation)
    code.fit(20_000)
    rng = np.random.default_rng(0)
    scores = rng.normal(-6, 1, (100, 6, 500)).astype(np.float32)
    rows, labels = np.arange(100).repeat(3), rng.integers(0, 20_000, 300)
    for r in range(6):
        scores[rows, r, code.table_[labels, r]] += 6
    one, many = code.decode(scores, 5), code.set_params(n_jobs=1).decode(scores, 5, prune=False)
    assert one == many
    np.testing.assert_allclose(one.scores, -np.sort(-reference(code, scores))[:, :5], rtol=1e-4)


def test_candidate_decoding_follows_the_paper() -> None:
    code = HashCode(n_buckets=30, n_repetitions=4, candidates=5, least_hits=2).fit(200)
    scores = np.random.default_rng(1).random((20, 4, 30)).astype(np.float32)
    top = code.decode(scores, k=3)
    for q in range(20):
        best = np.argsort(-scores[q], axis=1)[:, :5]
        hit = np.stack([np.isin(code.table_[:, r], best[r]) for r in range(4)])
        value = np.stack([scores[q, r, code.table_[:, r]] for r in range(4)])
        least = next(f for f in (2, 1) if (hit.sum(axis=0) >= f).sum() >= 3)
        score = np.where(hit.sum(axis=0) >= least, (hit * value).sum(axis=0) / 4, -1)
        order = np.lexsort((np.arange(200), -score.astype(np.float32)))[:3]
        np.testing.assert_allclose(top.scores[q], score[order], rtol=1e-5)
        np.testing.assert_array_equal(top.indices[q], order)


def test_candidates_with_all_buckets_are_exact() -> None:
    scores = np.random.default_rng(2).normal(size=(9, 3, 8)).astype(np.float32)
    code = HashCode(n_buckets=8, n_repetitions=3, link="sigmoid").fit(100)
    exact = code.decode(scores, 7)
    np.testing.assert_allclose(
        code.set_params(candidates=8, least_hits=1).decode(scores, 7).scores, exact.scores, 1e-6
    )


def test_ties_are_counted_and_named() -> None:
    code = HashCode.from_table([[0, 1], [1, 1], [0, 1], [1, 1], [0, 0], [0, 1]], 2)
    labels, firsts = code.twins()
    assert code.n_ties_ == 3
    assert labels.tolist() == [2, 3, 5] and firsts.tolist() == [0, 1, 0]
    top = code.decode(np.random.default_rng(0).random((1, 2, 2)), k=6).to_csr().toarray()[0]
    assert top[0] == top[2] == top[5] and top[1] == top[3]


def test_labels_are_added_without_moving_the_others() -> None:
    code = HashCode(n_buckets=11, n_repetitions=3).fit(50)
    more = code.with_labels(20)
    np.testing.assert_array_equal(more.table_[:50], code.table_)
    fresh = HashCode(n_buckets=11, n_repetitions=3).fit(70)
    np.testing.assert_array_equal(more.table_, fresh.table_)
    placed = code.with_labels(1, buckets=[[1, 2, 3]])
    assert placed.table_[50].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"\[0, 11\)"):
        code.with_labels(1, buckets=[[1, 2, 11]])
    with pytest.raises(ValueError, match=r"\(1, 3\).*\(1, 2\)"):
        code.with_labels(1, buckets=[[1, 2]])


def test_first_repetitions_do_not_depend_on_how_many_there_are() -> None:
    few, many = (HashCode(n_buckets=9, n_repetitions=R).fit(30) for R in (2, 5))
    np.testing.assert_array_equal(few.table_, many.table_[:, :2])


def test_default_size_is_a_quarter_of_the_labels() -> None:
    for L in (10_000, 22_625, 1_000_000):
        B, R = default_size(L)
        assert R * B <= L / 4


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"aggregation.*max"):
        HashCode(aggregation="max").fit(10)
    with pytest.raises(ValueError, match="n_buckets"):
        HashCode(n_buckets=0).fit(10)
    with pytest.raises(ValueError, match=r"\[0, 5\)"):
        HashCode.from_table([[0], [5]], 5)
    for table in ([[0.5], [1.0]], [[2**32], [1]], [[float("nan")], [1]], [["a"], ["b"]]):
        with pytest.raises(ValueError, match=r"\[0, 5\)"):  # not rounded, nor wrapped around
            HashCode.from_table(table, 5)
    with pytest.raises(ValueError, match=r"n_buckets.*2147483647"):
        HashCode(n_buckets=2**31).fit(10)
    for ask in (HashCode().twins, lambda: HashCode().encode_repetition([[0]], 0)):
        with pytest.raises(ValueError, match="HashCode"):
            ask()
    with pytest.raises(ValueError, match="64"):
        HashCode(aggregation="median", n_repetitions=65).fit(10)
    with pytest.raises(ValueError, match=r"\(n, 16, 10\).*\(3, 5\)"):
        HashCode(n_buckets=10).fit(10).decode(np.zeros((3, 5)), 1)


@pytest.mark.parametrize("labels", [[3], [0, 2, 7, 29], list(range(30))])
def test_a_restricted_code_ranks_its_labels_alike(labels: list[int]) -> None:
    scores = np.random.default_rng(0).normal(size=(40, 3, 9)).astype(np.float32)
    code = HashCode(n_buckets=9, n_repetitions=3, candidates=1).fit(30)
    found = code.restricted(np.array(labels)).decode(scores, 3)
    full = code.set_params(candidates=None).decode(scores, 30)
    for q in range(40):
        wanted = [i for i in full.indices[q] if i in labels][:3]
        assert [labels[i] for i in found.indices[q]] == wanted
