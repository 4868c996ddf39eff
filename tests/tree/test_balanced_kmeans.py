import numpy as np
import pytest
import scipy.sparse as sp
import tree_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail._native import core, csr_args
from longtail.tree import balanced_clusters
from longtail.tree.clustering import cluster_order
from longtail.tree.shape import balanced_shape

SMALL, LARGE = 1 << 40, 1  # every split on one thread after renaming; every split over the threads


@pytest.mark.parametrize("large", [SMALL, LARGE])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("spherical", [True, False])
@pytest.mark.parametrize("max_iter", [1, 2, 20])
def test_equals_the_reference(large, dense, spherical, max_iter):
    for seed in range(5):
        rows = reference.random_rows(90, 40, 0.2, seed, dense)
        shape = balanced_shape([3, 7, 90])
        options = {"max_iter": max_iter, "spherical": spherical}
        order = cluster_order(rows, shape, seed=seed, large=large, n_jobs=2, **options)
        assert order.tolist() == reference.cluster_order(rows, shape, seed, **options).tolist()


def test_rows_of_any_length_with_plain_centroids():
    rows = reference.random_rows(200, 30, 0.3, 1) * 1e4
    shape = balanced_shape([8, 200])
    order = cluster_order(rows, shape, seed=3, spherical=False)
    expected = reference.cluster_order(rows, shape, 3, spherical=False)
    assert order.tolist() == expected.tolist()


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("large", [SMALL, 3000, LARGE])
def test_same_for_any_number_of_threads(dense, large):
    rows = reference.random_rows(
        3000, 20_000 if not dense else 50, 0.002 if not dense else 0.5, 0, dense
    )
    shape = balanced_shape([32, 3000])
    orders = [
        cluster_order(rows, shape, seed=5, n_jobs=threads, large=large) for threads in (1, 2, 3, 16)
    ]
    for order in orders[1:]:
        assert np.array_equal(order, orders[0])


def test_seed_matters_and_repeats():
    rows = reference.random_rows(300, 50, 0.1, 0)
    a, b, c = (balanced_clusters(rows, 8, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_finds_what_is_there():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 25)
    centers = np.kron(np.eye(4), np.ones((1, 5)))
    rows = centers[truth] + 0.1 * rng.random((100, 20))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # Two seeds of one blob may part it for good, so one seed need not find all four: some must.
    found = [balanced_clusters(rows, 4, random_state=seed) for seed in range(10)]
    right = [all(len(set(truth[f == c])) == 1 for c in range(4)) for f in found]
    assert sum(right) >= 5


@given(st.integers(1, 60), st.data())
@settings(max_examples=60)
def test_every_row_once_and_sizes_within_one(n, data):
    k = data.draw(st.integers(1, n))
    values = data.draw(
        st.lists(
            st.lists(st.sampled_from([0.0, 0.5, 1.0, -1.0]), min_size=3, max_size=3),
            min_size=n,
            max_size=n,
        )
    )  # many zero rows, many duplicates
    for rows in (np.array(values), sp.csr_matrix(np.array(values))):
        clusters = balanced_clusters(rows, k, random_state=0)
        sizes = np.bincount(clusters, minlength=k)
        assert len(clusters) == n
        assert len(sizes) == k
        assert np.ptp(sizes) <= 1


def test_ties_go_to_the_smaller_row():
    zeros = sp.csr_matrix((10, 4), dtype=np.float32)
    assert balanced_clusters(zeros, 2).tolist() == [0] * 5 + [1] * 5
    same = np.ones((7, 3), dtype=np.float32)
    assert balanced_clusters(same, 3).tolist() == [0, 0, 1, 1, 2, 2, 2]


def test_no_features_at_all():
    assert balanced_clusters(sp.csr_matrix((5, 0)), 2).tolist() == [0, 0, 1, 1, 1]
    assert balanced_clusters(np.empty((4, 0)), 2).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("large", [SMALL, LARGE])
def test_stops_when_the_caller_does(large):
    rows = np.random.default_rng(0).standard_normal((40_000, 128)).astype(np.float32)

    told = []

    def give_up(done, total):
        told.append((done, total))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster_order(
            rows,
            balanced_shape([64, 40_000]),
            seed=0,
            max_iter=200,
            n_jobs=1,
            spherical=False,
            large=large,
            progress=give_up,
        )
    [(done, total)] = told
    assert 0 <= done < total, "it stopped in the middle, and asked no second time"


def test_refusals():
    rows = np.eye(3, dtype=np.float32)
    with pytest.raises(ValueError, match="4 clusters of 3 rows"):
        balanced_clusters(rows, 4)
    with pytest.raises(ValueError, match="max_iter"):
        balanced_clusters(rows, 2, max_iter=0)
    with pytest.raises(ValueError, match="NaN"):
        balanced_clusters(np.array([[np.nan], [1.0]]), 2)
    with pytest.raises(ValueError, match="too long"):
        balanced_clusters(np.array([[1e30], [1.0]]), 2)


@pytest.mark.parametrize(
    "splits, round_ptr",
    [
        ([[0, 0, 3]], [0, 1]),  # nothing on the left
        ([[0, 3, 3]], [0, 1]),
        ([[0, 2, 4]], [0, 1]),  # beyond the rows
        ([[-1, 1, 3]], [0, 1]),
        ([[0, 1, 2], [1, 2, 3]], [0, 2]),  # overlap within a round
        ([[0, 1, 3]], [0, 2]),
        ([[0, 1, 3]], [0, 1, 0, 1]),
    ],
)
def test_the_kernel_refuses_plans_that_would_write_elsewhere(splits, round_ptr):
    order = np.arange(3, dtype=np.int32)
    with pytest.raises(ValueError, match=r"split|round"):
        core.balanced_splits_csr(
            csr_args(sp.eye(3, format="csr")),
            np.array(splits, dtype=np.int64),
            np.array(round_ptr, dtype=np.int64),
            20,
            True,
            0,
            1 << 20,
            1,
            order,
        )
    assert order.tolist() == [0, 1, 2]
