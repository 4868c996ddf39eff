import numpy as np
import pytest
import scipy.sparse as sp
import tree_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.features import unit_rows
from longtail.tree import pifa
from longtail.tree.label_features import concatenate


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("dense", [False, True])
@given(
    seed=st.integers(0, 10_000), n=st.integers(1, 30), d=st.integers(1, 200), m=st.integers(1, 20)
)
@settings(max_examples=30)
def test_equals_three_lines_of_scipy(normalize, dense, seed, n, d, m):
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.2, format="csr", random_state=rng)
    Y = sp.random(n, m, 0.2, format="csr", random_state=rng)  # soft targets
    Z = pifa(X.toarray() if dense else X, Y, normalize_label_rows=normalize)
    assert Z.dtype == np.float32
    assert sp.issparse(Z) != dense
    Z = Z if dense else Z.toarray()
    np.testing.assert_allclose(Z, reference.pifa(X, Y, normalize), atol=1e-6)


def test_the_two_normalisations_differ_as_they_should():
    X = np.eye(2, dtype=np.float32)
    Y = [[0], [0, 1, 2, 3]]  # the second row has four labels: half the weight for each
    np.testing.assert_allclose(pifa(X, Y)[0], np.array([2, 1]) / np.sqrt(5), atol=1e-6)
    plain = pifa(X, Y, normalize_label_rows=False)
    np.testing.assert_allclose(plain[0], np.array([1, 1]) / np.sqrt(2), atol=1e-6)


def test_columns_ascend_over_a_wide_matrix_and_threads_agree():
    rng = np.random.default_rng(0)
    X = sp.random(400, 300_000, 1e-3, format="csr", random_state=rng)
    Y = sp.random(400, 700, 0.01, format="csr", random_state=rng)
    one, four = pifa(X, Y, n_jobs=1), pifa(X, Y, n_jobs=4)
    assert one.has_sorted_indices
    assert all((np.diff(one[i].indices) > 0).all() for i in range(0, 700, 50))
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(one, name), getattr(four, name))
    expected = reference.pifa(X[:, ::1000], Y, True)
    scale = np.linalg.norm(one[:, ::1000].toarray(), axis=1, keepdims=True)
    np.testing.assert_allclose(one[:, ::1000].toarray(), expected * scale, atol=1e-6)


def test_labels_without_positives_and_sums_that_cancel_are_zero_rows():
    X = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for features in (X, sp.csr_matrix(X)):
        Z = pifa(features, sp.csr_matrix([[1.0, 0, 1], [1, 0, 0]]), normalize_label_rows=False)
        Z = Z.toarray() if sp.issparse(Z) else Z
        np.testing.assert_allclose(Z, [[0, 0], [0, 0], np.array([1, -1]) / np.sqrt(2)], atol=1e-6)


def test_truncation_keeps_the_largest_and_unit_length():
    X = sp.csr_matrix([[0.1, -0.9, 0.2, 0.3, 0.3]])
    Z = pifa(X, [[0]], max_features_per_label=2)
    kept = np.array([0, -0.9, 0, 0.3, 0])  # of the equal ones the smaller column
    np.testing.assert_allclose(Z.toarray()[0], kept / np.linalg.norm(kept), atol=1e-6)
    all_of_it = pifa(X, [[0]], max_features_per_label=5)
    np.testing.assert_array_equal(all_of_it.toarray(), pifa(X, [[0]]).toarray())


@given(st.integers(0, 1000), st.integers(1, 12))
@settings(max_examples=30)
def test_truncation_equals_a_sort(seed, keep):
    rng = np.random.default_rng(seed)
    X = sp.random(20, 30, 0.3, format="csr", random_state=rng)
    Y = sp.random(20, 6, 0.3, format="csr", random_state=rng)
    full = pifa(X, Y).toarray()
    order = np.argsort(-np.abs(full), axis=1, kind="stable")
    for row, ranks in zip(full, order, strict=True):
        row[ranks[keep:]] = 0
    kept = pifa(X, Y, max_features_per_label=keep)
    np.testing.assert_allclose(
        kept.toarray(), reference.unit(sp.csr_matrix(full)).toarray(), atol=1e-6
    )
    assert np.diff(kept.indptr).max() <= keep


def test_refusals():
    X = np.eye(2, dtype=np.float32)
    with pytest.raises(ValueError, match="rows"):
        pifa(X, [[0]])
    with pytest.raises(ValueError, match="max_features_per_label"):
        pifa(sp.csr_matrix(X), [[0], [0]], max_features_per_label=0)
    with pytest.raises(ValueError, match="sparse X"):
        pifa(X, [[0], [0]], max_features_per_label=3)
    huge = np.full((2, 1), 3e38)
    for features in (huge, sp.csr_matrix(huge)):
        with pytest.raises(ValueError, match="label 0 overflows"):
            pifa(features, [[0], [0]], normalize_label_rows=False)


@pytest.mark.parametrize(
    "left, right", [(False, False), (True, False), (False, True), (True, True)]
)
def test_concatenation_weighs_both_parts_the_same(left, right):
    a = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]], dtype=np.float32)
    b = np.array([[2.0], [5.0], [0.0]], dtype=np.float32)
    first, second = (
        unit_rows(sp.csr_matrix(a) if left else a),
        unit_rows(sp.csr_matrix(b) if right else b),
    )
    both = concatenate(first, second)
    both = both.toarray() if sp.issparse(both) else both
    half = np.sqrt(0.5)
    np.testing.assert_allclose(
        both, [[0.6 * half, 0.8 * half, half], [0, 0, 1], [1, 0, 0]], atol=1e-6
    )
