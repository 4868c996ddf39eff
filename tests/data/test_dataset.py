import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data import Dataset, Split


def test_split_takes_rows_in_order():
    split = Split(
        X=np.arange(8.0).reshape(4, 2),
        Y=[[0], [1], [], [0, 1]],
        texts=["a", "b", "c", "d"],
        unknown_labels=[0, 3, 0, 1],
    )
    for rows in ([3, 1], np.array([3, 1])):
        taken = split.take(rows)
        assert taken.X.tolist() == [[6, 7], [2, 3]]
        assert taken.Y.toarray().tolist() == [[1, 1], [0, 1]]
        assert taken.texts == ["d", "b"]
        assert taken.unknown_labels.tolist() == [1, 3]
    assert split.take(np.array([True, False, False, True])).texts == ["a", "d"]
    assert split.take(slice(1, 3)).texts == ["b", "c"]
    assert split.take(2).texts == ["c"]
    assert len(split.take([])) == 0
    assert split.n_unknown_labels == 4


def test_split_carries_texts_by_field():
    fields = {"title": ["cats", "cows", ""], "body": ["purr", "", "moo"]}
    split = Split(Y=[[0], [1], [1]], fields=fields)
    assert split.texts == ["cats purr", "cows", "moo"]
    assert split.inputs == fields
    assert repr(split) == "Split(3 rows, 2 labels, texts by title, body)"
    taken = split.take([2, 0])
    assert taken.fields == {"title": ["", "cats"], "body": ["moo", "purr"]}
    assert taken.texts == ["moo", "cats purr"]
    assert Split(texts=["a"], X=[[1.0]]).inputs == ["a"]
    assert Split(X=[[1.0]]).inputs.shape == (1, 1)
    assert Split(Y=[[0]]).inputs is None


@pytest.mark.parametrize("fields", [{}, ["a"], {"title": "abc"}, {"title": [None]}])
def test_fields_must_map_names_to_texts(fields):
    with pytest.raises(TypeError, match="fields"):
        Split(fields=fields)


@pytest.mark.parametrize(
    "parts",
    [
        {"fields": {"title": ["a"], "body": ["b", "c"]}},
        {"fields": {"title": ["a"]}, "texts": ["a", "b"]},
        {"X": np.ones((2, 3)), "Y": [[0]]},
        {"X": np.ones((2, 3)), "texts": ["a"]},
        {"Y": [[0]], "texts": []},
        {"Y": [[0]], "unknown_labels": [1, 2]},
    ],
)
def test_split_refuses_parts_of_different_length(parts):
    with pytest.raises(ValueError, match="must describe the same rows"):
        Split(**parts)


@pytest.mark.parametrize("texts", ["abc", ["a", None], [b"a"]])
def test_texts_must_be_strings(texts):
    with pytest.raises(TypeError, match="texts"):
        Split(texts=texts)


def test_split_converts_at_the_door():
    split = Split(X=sp.coo_matrix(np.eye(2)), Y=np.array([0, 1]), texts=("a", "b"))
    assert split.X.format == "csr"
    assert split.X.dtype == np.float32
    assert split.Y.shape == (2, 2)
    assert split.texts == ["a", "b"]


def test_features_can_be_put_next_to_texts():
    split = dataclasses.replace(Split(texts=["a", "b"]), X=np.ones((2, 3)))
    assert repr(split) == "Split(2 rows, 3 features, texts)"
    with pytest.raises(ValueError, match="same rows"):
        dataclasses.replace(split, X=np.ones((3, 3)))


def test_absent_splits():
    ds = Dataset(test=Split(Y=[[0]]))
    assert list(ds.splits) == ["test"]
    assert len(ds.train) == 0
    assert ds.train.Y is None
    assert ds.dev is None
    assert ds.validation is None
    assert (ds.n_labels, ds.n_features) == (1, None)
    assert ds.train is not Dataset().train
    assert repr(ds.train) == "Split(empty)"


def test_repr_says_what_is_there():
    ds = Dataset(
        train=Split(X=np.ones((2, 3)), Y=[[0], [1]]),
        dev=Split(X=np.ones((1, 3)), Y=np.array([[1, 0]])),
        label_names=["a", "b"],
        label_texts=["x", "y"],
        name="tiny",
    )
    assert repr(ds) == (
        "Dataset('tiny', train: 2 rows, dev: 1 rows, 3 features, 2 labels with names and texts)"
    )
    assert repr(Dataset()) == "Dataset(0 labels)"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"test": Split(Y=[[0]])}, "different numbers of labels: train 2, test 1"),
        ({"test": Split(X=np.ones((1, 4)))}, "different numbers of features: train 3, test 4"),
        ({"label_names": ["a"]}, "label_names has 1 entries, but train has 2 labels"),
        ({"label_texts": ["a", "b", "c"]}, "label_texts has 3"),
        ({"feature_names": ["a"]}, "feature_names has 1"),
        ({"inverse_propensity": np.ones(5)}, "inverse_propensity has 5"),
        ({"label_names": ["a", "a"]}, "occurs twice"),
        ({"label_names": ["a", ""]}, "empty"),
        ({"train_filter": [[2, 0]]}, "train_filter names the row 2"),
        ({"train_filter": [[0, 2]]}, "train_filter names the label 2"),
        ({"train_filter": [[-1, 0]]}, "row -1"),
    ],
)
def test_parts_must_fit_together(parts, message):
    train = Split(X=np.ones((2, 3)), Y=[[0], [1]])
    with pytest.raises(ValueError, match=message):
        Dataset(**{"train": train, **parts})


def test_label_names_must_be_strings():
    with pytest.raises(TypeError, match="name 0 is 5"):
        Dataset(label_names=[5])


def test_filter_pairs():
    train = Split(Y=[[0], [1]])
    assert Dataset(train, train_filter=[]).train_filter.shape == (0, 2)
    # The pairs of a split that is not there can only be checked for their labels.
    ds = Dataset(train, test_filter=[[999, 1]])
    assert ds.test_filter.dtype == np.int64
    with pytest.raises(ValueError, match="test_filter names the label 2"):
        Dataset(train, test_filter=[[999, 2]])


def test_vocabulary_needs_names():
    assert Dataset(label_names=["a"]).vocabulary.id("a") == 0
    with pytest.raises(ValueError, match="no label names"):
        _ = Dataset().vocabulary
