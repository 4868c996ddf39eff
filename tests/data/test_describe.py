"""Statistics of data sets, checked by hand on a small one and by recount on random ones."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.dataset import Dataset, Split
from longtail.data.describe import describe
from longtail.data.fingerprints import feature_fingerprints, text_fingerprints
from longtail.data.load import load_dataset
from longtail.data.synthetic import make_longtail
from longtail.exceptions import MissingDependencyError


def labels(rows, width):
    Y = np.zeros((len(rows), width), np.float32)
    for i, row in enumerate(rows):
        Y[i, row] = 1
    return sp.csr_matrix(Y)


@pytest.fixture
def small():
    train = Split(
        X=np.array([[1, 0, 0], [0, 2, 1], [0, 0, 0], [1, 0, 0]], np.float32),
        Y=labels([[0, 1], [0], [], [0]], 4),
        texts=["One two", "three", "four five six", "ONE  two"],
    )
    test = Split(
        X=sp.csr_matrix(np.array([[0, 2, 1], [5, 5, 5]], np.float32)),
        Y=labels([[2], [1]], 4),
        texts=["Three", "new words"],
    )
    return Dataset(train, test, name="small")


def test_numbers_by_hand(small):
    found = describe(small, tail=1, head=2)
    train, test = found.splits["train"], found.splits["test"]
    assert (found.name, found.n_features, found.n_labels) == ("small", 3, 4)
    assert (train.rows, test.rows) == (4, 2)
    assert (train.labels_per_point, test.labels_per_point) == (1.0, 1.0)
    assert (train.points_per_label, test.points_per_label) == (1.0, 0.5)
    assert (train.labels_with_positives, test.labels_with_positives) == (2, 2)
    assert (train.labels_unseen_in_training, test.labels_unseen_in_training) == (None, 1)
    assert (train.features_per_point, test.features_per_point) == (1.0, 2.5)
    assert (train.words_per_text, test.words_per_text) == (2.0, 1.5)
    assert (train.rows_without_labels, test.rows_without_labels) == (1, 0)
    assert (train.rows_without_features, test.rows_without_features) == (1, 0)
    assert (train.duplicates, test.duplicates) == (1, 0)
    assert (train.also_in_train, test.also_in_train) == (None, 1)
    assert found.compared_by == "text"
    assert found.frequencies.tolist() == [3, 1, 0, 0]
    bins = {b.name: (b.labels, b.share_of_labels, b.share_of_positives) for b in found.bins}
    assert bins == {
        "head": (1, 0.25, 0.75),
        "torso": (0, 0.0, 0.0),
        "tail": (1, 0.25, 0.25),
        "unseen": (2, 0.5, 0.0),
    }
    assert found.pos80 == 0.5


def test_features_are_compared_where_there_are_no_texts(small):
    small.test.texts = None
    found = describe(small)
    assert found.compared_by == "features"
    assert found.splits["train"].duplicates == 1  # the empty row is left out
    assert found.splits["test"].also_in_train == 1
    assert "compared by their features" in str(found)


def test_table(small):
    text = str(describe(small))
    assert text.splitlines()[0] == "small: 3 features, 4 labels"
    lines = {line[:25].strip(): line[25:].split() for line in text.splitlines()[2:] if line}
    assert lines["rows"] == ["4", "2"]
    assert lines["labels unseen in training"] == ["1"]
    assert "head (101 or more)" in text and "tail (1 to 5)" in text
    assert not any(line != line.rstrip() for line in text.splitlines())
    header = next(line for line in text.splitlines() if line.strip().startswith("train"))
    for line in text.splitlines()[3:6]:
        assert len(line) == len(header)  # columns end below their titles


def test_to_dict_is_json(small):
    found = json.loads(json.dumps(describe(small).to_dict()))
    assert found["splits"]["test"]["also_in_train"] == 1
    assert [b["name"] for b in found["bins"]] == ["head", "torso", "tail", "unseen"]


def test_dev_split_and_missing_parts():
    ds = Dataset(Split(Y=labels([[0]], 2)), dev=Split(Y=labels([[1], [1]], 2)))
    found = describe(ds)
    assert list(found.splits) == ["train", "dev"]
    assert found.splits["dev"].labels_unseen_in_training == 1
    assert found.splits["dev"].duplicates is None and found.compared_by is None
    assert "duplicates" not in str(found) and "features" not in str(found)


def test_no_positives_and_test_only():
    found = describe(Dataset(Split(Y=labels([[], []], 3))))
    assert found.pos80 is None and found.splits["train"].labels_per_point == 0
    assert str(found)
    only = describe(Dataset(test=Split(Y=labels([[1]], 3))))
    assert only.splits["test"].labels_unseen_in_training == 1
    assert only.bins[-1].labels == 3


def test_refusals(small):
    with pytest.raises(ValueError, match="no rows"):
        describe(Dataset())
    for tail, head in ((0, 5), (5, 5), (7, 5)):
        with pytest.raises(ValueError, match="tail must be"):
            describe(small, tail=tail, head=head)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=5, unique=True), min_size=1, max_size=30),
    st.lists(st.lists(st.integers(0, 9), max_size=5, unique=True), min_size=1, max_size=30),
)
def test_recount(train_rows, test_rows):
    ds = Dataset(Split(Y=labels(train_rows, 10)), Split(Y=labels(test_rows, 10)))
    found = describe(ds, tail=2, head=5)
    counts = [sum(label in row for row in train_rows) for label in range(10)]
    in_test = {label for row in test_rows for label in row}
    assert found.splits["test"].labels_unseen_in_training == sum(counts[i] == 0 for i in in_test)
    kinds = [
        "unseen" if c == 0 else "tail" if c <= 2 else "torso" if c <= 5 else "head" for c in counts
    ]
    assert {b.name: b.labels for b in found.bins} == {
        kind: kinds.count(kind) for kind in ("head", "torso", "tail", "unseen")
    }
    assert sum(b.share_of_labels for b in found.bins) == pytest.approx(1)
    if sum(counts):
        assert sum(b.share_of_positives for b in found.bins) == pytest.approx(1)
        ranked = sorted(counts, reverse=True)
        fewest = next(k for k in range(1, 11) if sum(ranked[:k]) >= 0.8 * sum(ranked) - 1e-9)
        assert found.pos80 == fewest / 10


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=3, max_size=3), min_size=1, max_size=30
    )
)
def test_feature_fingerprints_tell_rows_apart(rows):
    X = np.array(rows, np.float32)
    kept = [tuple(row) for row in rows if any(row)]
    for matrix in (X, sp.csr_matrix(X)):
        keys = feature_fingerprints(matrix)
        assert len(keys) == len(kept)
        assert len(set(keys.tolist())) == len(set(kept))


def test_fingerprints_across_chunks(monkeypatch):
    X = make_longtail(50, 30, 5, random_state=1).train.X
    whole = feature_fingerprints(X)
    monkeypatch.setattr("longtail.data.fingerprints._ROWS", 7)
    assert np.array_equal(feature_fingerprints(X), whole)
    assert len(text_fingerprints(["\ud800", "", "a"])) == 3  # a lone surrogate is no error


def test_plot(small, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = describe(make_longtail(2000, 50, 300)).plot()
    assert len(ax.patches) == 3 and len(ax.lines) == 1
    assert ax.lines[0].get_ydata()[0] == max(ax.lines[0].get_ydata())
    assert "300 labels" in ax.get_title()
    ax.figure.savefig(tmp_path / "labels.png")
    assert (tmp_path / "labels.png").stat().st_size > 5000
    own = ax.figure.add_subplot()
    assert describe(small).plot(own) is own
    assert "without a training row" in own.get_title()
    matplotlib.pyplot.close("all")


def test_plot_without_matplotlib(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"longtail\[plot\]"):
        describe(small).plot()


def test_real_data():
    root = os.environ.get("LONGTAIL_DATA")
    if not root:
        pytest.skip("LONGTAIL_DATA is not set: no real data sets here")
    found = load_dataset(os.path.join(root, "EURLex-4K-labels-only")).describe()
    assert found.n_labels == 3993 and found.splits["train"].rows == 15539
    assert found.bins[-1].labels == 207  # labels without a training row, as its README says
    assert found.splits["train"].labels_per_point == pytest.approx(5.31, abs=0.005)
