"""The splitter: no label loses its last training row."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.dataset import Split
from longtail.data.split import train_validation_indices, train_validation_split
from longtail.data.synthetic import make_longtail


def counts(Y):
    return np.bincount(Y.indices, minlength=Y.shape[1])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 6), max_size=4, unique=True), min_size=1, max_size=25),
    size=st.floats(0, 0.99),
    min_train=st.integers(0, 3),
    seed=st.integers(0, 5),
)
def test_every_label_keeps_its_rows(rows, size, min_train, seed):
    Y = Split(Y=[set(row) for row in rows]).Y  # lists of 0 and 1 alone would be ambiguous
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train, valid = train_validation_indices(
            Y, validation_size=size, min_train=min_train, random_state=seed
        )
    assert sorted([*train, *valid]) == list(range(len(rows)))
    assert (np.diff(train) > 0).all() and (np.diff(valid) > 0).all()
    assert len(valid) <= int(size * len(rows) + 0.5)
    assert (counts(Y[train]) >= np.minimum(counts(Y), min_train)).all()
    # No row that could have moved was left behind.
    if len(valid) < int(size * len(rows) + 0.5):
        left = counts(Y[train])
        for row in train:
            labels = Y[row].indices
            assert len(labels) and left[labels].min() <= min_train


def test_long_tail_keeps_all_labels_and_reaches_the_size():
    ds = make_longtail(4000, 100, 1500, labels_per_row=4)
    train, valid = train_validation_split(ds.train, validation_size=0.1)
    assert len(valid) == 400 and len(train) == 3600
    assert (counts(train.Y) > 0).sum() == 1500
    rng = np.random.default_rng(0)
    random = np.sort(rng.permutation(4000)[:3600])
    assert (counts(ds.train.Y[random]) > 0).sum() < 1500  # what a random split would do


def test_keeps_parts_together():
    X = np.arange(40, dtype=np.float32).reshape(20, 2)
    Y = [[i % 3] for i in range(20)]
    texts = [str(i) for i in range(20)]
    train, valid = train_validation_split(X, Y, texts, validation_size=5, random_state=3)
    assert len(train) == 15 and len(valid) == 5
    for part in (train, valid):
        for i, text in enumerate(part.texts):
            assert part.X[i, 0] == 2 * int(text) and part.Y[i].indices[0] == int(text) % 3
    again, _ = train_validation_split(
        Split(X=X, Y=Y, texts=texts), validation_size=5, random_state=3
    )
    assert again.texts == train.texts
    other, _ = train_validation_split(X, Y, texts, validation_size=5, random_state=4)
    assert other.texts != train.texts


def test_texts_only_and_labels_only():
    train, valid = train_validation_split(
        None, [[0]] * 4, ["a", "b", "c", "d"], validation_size=0.5
    )
    assert len(train.texts) == len(valid.texts) == 2
    train, valid = train_validation_split(None, [[0]] * 4, validation_size=0.5)
    assert train.Y.shape == valid.Y.shape == (2, 1)


def test_warns_when_rows_cannot_move():
    with pytest.warns(UserWarning, match="only 0 of the 2 validation rows"):
        train, valid = train_validation_indices([[0], [1], [2], [3]], validation_size=2)
    assert len(valid) == 0 and len(train) == 4


def test_rows_without_labels_may_move():
    _, valid = train_validation_indices([[0], [], []], validation_size=2)
    assert valid.tolist() == [1, 2]


@pytest.mark.parametrize("size", [1.0, -0.1, float("nan"), 5, -1])
def test_sizes_refused(size):
    with pytest.raises(ValueError, match="validation_size"):
        train_validation_indices([[0]] * 4, validation_size=size)


def test_arguments_refused():
    with pytest.raises(TypeError, match="number"):
        train_validation_indices([[0]], validation_size="10%")
    with pytest.raises(TypeError, match="min_train"):
        train_validation_indices([[0]], min_train=0.5)
    with pytest.raises(ValueError, match="min_train"):
        train_validation_indices([[0]], min_train=-1)
    with pytest.raises(TypeError, match="Split alone"):
        train_validation_split(Split(Y=[[0]]), [[0]])
    with pytest.raises(ValueError, match="labels are needed"):
        train_validation_split(np.ones((3, 2)))
    with pytest.raises(ValueError, match="rows"):
        train_validation_split(np.ones((3, 2)), [[0]])


def test_empty():
    train, valid = train_validation_indices(sp.csr_matrix((0, 3), dtype=np.float32))
    assert len(train) == len(valid) == 0


def test_many_rows():
    rng = np.random.default_rng(0)
    n, L = 100_000, 50_000
    labels = rng.integers(0, L, (n, 5))
    Y = sp.csr_matrix(
        (np.ones(n * 5, np.float32), labels.ravel(), np.arange(0, 5 * n + 1, 5)), shape=(n, L)
    )
    Y.sum_duplicates()
    Y.data[:] = 1
    train, valid = train_validation_indices(Y)
    assert len(valid) == 10_000 and (counts(Y[train]) > 0).sum() == (counts(Y) > 0).sum()
