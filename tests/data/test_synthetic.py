"""The generator: statistics as asked, the same bits always, and something to learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from longtail._native import core
from longtail.data.registry import benchmark
from longtail.data.synthetic import make_longtail
from longtail.data.synthetic_world import PowerLaw, Sizes, World


def frequencies(Y):
    return np.bincount(Y.indices, minlength=Y.shape[1])


def pos80(Y):
    sorted_counts = np.sort(frequencies(Y))[::-1]
    held = np.cumsum(sorted_counts) / sorted_counts.sum()
    return (np.searchsorted(held, 0.8) + 1) / len(held)


def same(a, b):
    return (
        np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data.view(np.int32), b.data.view(np.int32))
    )


def same_dataset(a, b):
    pairs = [(a.train, b.train), (a.test, b.test)]
    return all(same(left.X, right.X) and same(left.Y, right.Y) for left, right in pairs)


SMALL = {"n": 3000, "d": 800, "L": 400, "labels_per_row": 4, "features_per_row": 30}


@pytest.fixture(scope="module")
def small():
    return make_longtail(**SMALL, random_state=7)


def test_shapes_and_averages(small):
    assert small.train.X.shape == (3000, 800) and small.train.Y.shape == (3000, 400)
    assert small.test.X.shape == (600, 800) and small.test.Y.shape == (600, 400)
    for split in (small.train, small.test):
        assert split.Y.nnz == 4 * len(split)
        assert split.X.nnz == 30 * len(split)
        assert np.diff(split.Y.indptr).min() == 1 and np.diff(split.Y.indptr).max() > 10
        assert split.X.dtype == split.Y.dtype == np.float32
        assert split.X.indices.dtype == split.Y.indices.dtype == np.int32


def test_rows_are_canonical_unit_tfidf(small):
    for split in (small.train, small.test):
        for matrix in (split.X, split.Y):
            for i in range(0, len(split), 37):
                row = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]
                assert (np.diff(row) > 0).all()
        norms = np.sqrt(np.asarray(split.X.multiply(split.X).sum(axis=1))).ravel()
        np.testing.assert_allclose(norms, 1, rtol=1e-5)
        assert split.X.data.min() > 0
        assert (split.Y.data == 1).all()


def test_weights_are_the_documented_tfidf():
    counts = np.array([1, 3, 2], np.float32)
    idf = np.array([1.5, 2.0], np.float32)
    core.synthetic_weigh(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), idf, counts, 1)
    first = np.array([1.5, (1 + np.log(3)) * 2.0])
    np.testing.assert_allclose(counts[:2], first / np.linalg.norm(first), rtol=1e-6)
    assert counts[2] == 1


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_same_bits_for_any_number_of_threads(small, threads):
    assert same_dataset(small, make_longtail(**SMALL, random_state=7, n_jobs=threads))


def test_seeds(small):
    other = make_longtail(**SMALL, random_state=8)
    assert not same(small.train.Y, other.train.Y) and not same(small.train.X, other.train.X)
    assert same_dataset(make_longtail(100, 50, 20), make_longtail(100, 50, 20, random_state=0))


def test_test_rows_are_not_training_rows(small):
    train = {small.train.X[i].indices.tobytes() for i in range(len(small.train))}
    assert not any(small.test.X[i].indices.tobytes() in train for i in range(len(small.test)))


def test_every_label_has_a_training_row(small):
    assert frequencies(small.train.Y).min() >= 1
    scarce = make_longtail(100, 50, 1000, labels_per_row=3)  # fewer positives than labels
    assert frequencies(scarce.train.Y).min() == 0


def test_frequencies_follow_the_power_law():
    flat, steep = (
        make_longtail(20000, 500, 2000, labels_per_row=5, exponent=s) for s in (0.4, 1.2)
    )
    assert pos80(steep.train.Y) < 0.3 < 0.5 < pos80(flat.train.Y)
    target = PowerLaw(2000, 100_000, 5000)(np.arange(1.0, 2001), 1.2)
    assert target.sum() == pytest.approx(100_000, rel=0.01)
    found = np.sort(frequencies(steep.train.Y))[::-1]
    np.testing.assert_allclose(found[:200], target[:200], rtol=0.35)
    assert found[0] <= 5000


@pytest.mark.parametrize("wanted", [0.25, 0.475])
def test_exponent_is_fitted_to_published_imbalance(wanted):
    law = PowerLaw(10_000, 50_000, 5_000)
    target = law(np.arange(1.0, 10_001), law.exponent_for(wanted))
    held = np.cumsum(target) / target.sum()
    assert np.searchsorted(held, 0.8) / 10_000 == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize(
    ("name", "scale", "more"),
    [
        ("Amazon-670K", 0.01, {}),
        ("Wiki10-31K", 0.05, {}),
        ("AmazonCat-13K", 0.01, {}),
        ("Amazon-3M", 0.003, {}),
        ("LF-AmazonTitles-131K", 0.03, {"d": 2000}),
    ],
)
def test_like_a_public_data_set(name, scale, more):
    entry = benchmark(name)
    ds = make_longtail(like=name, scale=scale, **more)
    assert len(ds.train) == round(entry.n_train * scale)
    assert len(ds.test) == round(entry.n_test * scale)
    assert ds.n_labels == round(entry.n_labels * scale)
    assert ds.n_features == more.get("d", round((entry.n_features or 0) * scale))
    assert (ds.a, ds.b) == (entry.a, entry.b)
    Y = ds.train.Y
    assert Y.nnz / len(ds.train) == pytest.approx(entry.labels_per_point, rel=0.002)
    expected = entry.n_train * entry.labels_per_point / entry.n_labels
    assert Y.nnz / Y.shape[1] == pytest.approx(expected, rel=0.005)
    if entry.features_per_point:
        assert ds.train.X.nnz / len(ds.train) == pytest.approx(entry.features_per_point, rel=1e-3)
    if entry.pos80:
        assert pos80(Y) == pytest.approx(entry.pos80, abs=0.06)


def test_labels_of_a_topic_occur_together():
    sizes = Sizes(5000, 0, 300, 500, 4.0, 20.0, 1.0, None, n_topics=10, noise=0.5)
    world = World(sizes, seed=1, threads=1)
    _, (indptr, labels) = world.rows(5000, 0, cover=True)
    Y = sp.csr_matrix((np.ones(len(labels)), labels, indptr), shape=(5000, 500))
    together = (Y.T @ Y).toarray()
    p = frequencies(Y) / 5000
    chance = 5000 * np.outer(p, p)
    topical = np.zeros(500, bool)
    topical[world.order[world.topic_begin[0] :]] = True
    topic = np.where(topical, world.label_topic, -1 - np.arange(500))
    same_topic = topic[:, None] == topic[None, :]
    apart = ~same_topic & topical[:, None] & topical[None, :]
    np.fill_diagonal(same_topic, False)
    assert together[same_topic].sum() > 4 * chance[same_topic].sum()
    assert together[apart].sum() < chance[apart].sum()


def ridge_scores(ds):
    X, Y = ds.train.X, ds.train.Y
    kernel = (X @ X.T).toarray()
    weights = np.linalg.solve(kernel + np.eye(len(kernel)), Y.toarray())
    return (ds.test.X @ X.T).toarray() @ weights


def hits_at_1(scores, Y):
    best = scores.argmax(axis=1)
    return np.asarray(Y[np.arange(Y.shape[0]), best]).ravel().mean()


def test_a_linear_model_learns_and_rare_labels_are_harder():
    ds = make_longtail(1500, 1500, 200, labels_per_row=3, features_per_row=40)
    scores, counts = ridge_scores(ds), frequencies(ds.train.Y)
    popularity = np.tile(counts, (len(ds.test), 1))
    assert hits_at_1(scores, ds.test.Y) > 0.7 > 0.4 > hits_at_1(popularity, ds.test.Y)
    truth = ds.test.Y.toarray() > 0
    rank = (-scores).argsort(axis=1).argsort(axis=1)
    recall = {
        kind: (rank[truth & mask] < 5).mean()
        for kind, mask in (("head", counts >= 50), ("tail", counts <= 10))
    }
    assert recall["head"] > 0.7 and 0.05 < recall["tail"] < recall["head"] - 0.1
    noisy = make_longtail(1500, 1500, 200, labels_per_row=3, features_per_row=40, noise=0.75)
    assert hits_at_1(ridge_scores(noisy), noisy.test.Y) < hits_at_1(scores, ds.test.Y) - 0.1


@pytest.mark.parametrize(
    ("n", "d", "L", "more"),
    [
        (1, 1, 1, {}),
        (1, 5, 1, {"labels_per_row": 1, "features_per_row": 5}),
        (5, 3, 2, {"labels_per_row": 2, "features_per_row": 3}),
        (50, 20, 10, {"labels_per_row": 0.2, "features_per_row": 0.5}),
        (50, 20, 10, {"labels_per_row": 0, "features_per_row": 0}),
        (10, 20, 200, {"labels_per_row": 150}),
        (40, 20, 30, {"n_topics": 30, "exponent": 0}),
        (200, 20, 30, {"n_topics": 1, "exponent": 4, "noise": 0}),
        (30, 20, 10, {"n_test": 0}),
    ],
)
def test_extreme_sizes(n, d, L, more):
    ds = make_longtail(n, d, L, **more)
    assert ds.train.X.shape == (n, d) and ds.train.Y.shape == (n, L)
    for matrix in (ds.train.X, ds.train.Y):
        assert matrix.nnz == 0 or matrix.indices.max() < matrix.shape[1]
        unchecked = matrix.copy()
        unchecked.has_canonical_format = False
        unchecked.sum_duplicates()
        assert unchecked.nnz == matrix.nnz


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 10, "d": 5}, TypeError, "give L, the number of labels"),
        ({"like": "LF-Amazon-131K"}, TypeError, "give d.*not published for LF-Amazon-131K"),
        ({"n": 0, "d": 5, "L": 3}, ValueError, "n must lie between 1"),
        ({"n": 1.5, "d": 5, "L": 3}, TypeError, "whole number"),
        ({"n": 10, "d": 5, "L": 3, "labels_per_row": 4}, ValueError, "between 0 and 3"),
        ({"n": 10, "d": 5, "L": 3, "features_per_row": 6}, ValueError, "between 0 and 5"),
        ({"n": 10, "d": 5, "L": 3, "noise": 1}, ValueError, "noise"),
        ({"n": 10, "d": 5, "L": 3, "exponent": float("nan")}, ValueError, "exponent"),
        ({"n": 10, "d": 5, "L": 3, "n_topics": 4}, ValueError, "n_topics"),
        ({"n": 10, "d": 5, "L": 3, "scale": 2}, ValueError, "needs like="),
        ({"like": "Bibtex", "scale": 0}, ValueError, "scale"),
        ({"like": "nothing"}, KeyError, "no data set"),
    ],
)
def test_refusals(arguments, error, message):
    with pytest.raises(error, match=message):
        make_longtail(**arguments)


def test_kernels_check_their_arguments():
    arguments = {
        "seed": 0,
        "first_row": 0,
        "order": np.array([0, 1], np.int32),
        "topic_begin": np.array([0, 2]),
        "cumulative": np.array([0.0, 1.0, 2.0]),
        "row_topic": np.array([0], np.int32),
        "row_rank": None,
        "topic_rows": np.array([1], np.int32),
        "general": 0.0,
        "coherence": 1.0,
        "indptr": np.array([0, 2]),
        "labels": np.empty(2, np.int32),
        "n_threads": 1,
        "progress": None,
    }
    core.synthetic_labels(**arguments)
    assert arguments["labels"].tolist() == [0, 1]
    wrong = {
        "row_topic": np.array([1], np.int32),
        "cumulative": np.array([0.0, 1.0]),
        "topic_begin": np.array([0, 1]),
        "indptr": np.array([0, 3]),
        "row_rank": np.array([1], np.int32),
    }
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=r"\w"):
            core.synthetic_labels(**{**arguments, name: value})
    with pytest.raises(ValueError, match="more labels than there are"):
        core.synthetic_labels(
            **{**arguments, "indptr": np.array([0, 3]), "labels": np.empty(3, np.int32)}
        )
