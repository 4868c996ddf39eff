"""A model that keeps some of its rows can learn new labels without the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail import metrics, persist

MAKERS = {
    "OneVsAll": lt.OneVsAll,
    "XRLinear": lambda: lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[6])),
}


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.data.make_longtail(n=1500, d=300, L=100, n_test=400, random_state=0)


@pytest.mark.parametrize("maker", MAKERS)
def test_kept_rows_stand_in_for_given_ones(maker: str, data: Any, tmp_path: Path) -> None:
    X, Y, old, new = data.train.X, data.train.Y, data.train.Y[:, :90], data.train.Y[:, 90:]
    rows = np.flatnonzero(np.diff(new.tocsr().indptr))
    model = MAKERS[maker]().fit(X, old, keep_rows=400)
    assert model.kept_rows_.X.shape[0] == 400
    model.save(tmp_path / "m")
    loaded = lt.load(tmp_path / "m", verify=True)
    for each in (model, loaded):
        each.add_labels(X[rows], new[rows])
    assert loaded.predict_topk(data.test.X) == model.predict_topk(data.test.X)
    # What the same rows do as `negatives`, with what else is known of them.
    kept = lt.load(tmp_path / "m").kept_rows_
    given = MAKERS[maker]().fit(X, old)
    given.add_labels(X[rows], new[rows], negatives=kept.with_labels(90))
    assert given.predict_topk(data.test.X) == model.predict_topk(data.test.X)
    # New labels are answered about as often as they are true, not everywhere.
    top = model.predict_topk(data.test.X, k=5)
    share = (top.indices >= 90).mean()
    truth = data.test.Y[:, 90:].nnz / data.test.Y.nnz
    assert truth / 2 < share < 4 * truth
    everything = MAKERS[maker]().fit(X, Y).predict_topk(data.test.X, k=5)
    best = metrics.precision_at_k(data.test.Y, everything, k=1)
    assert metrics.precision_at_k(data.test.Y, top, k=1) > best - 0.1


def test_labels_of_kept_rows_follow_the_model(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    model = lt.OneVsAll(max_iter=3).fit(X, Y, keep_rows=50)
    names = np.arange(100)
    before = model.kept_rows_.Y.toarray()
    model.remove_labels([3, 40])
    assert np.array_equal(model.kept_rows_.Y.toarray(), before[:, np.delete(names, [3, 40])])
    rows = sp.csr_matrix(np.eye(2, 300, dtype=np.float32))
    model.add_labels(rows, [[0], [1]])
    model.add_labels(rows, [[0], []])
    assert model.n_labels_ == 101
    model.remove_labels([100])
    assert model.kept_rows_.Y.shape == (50, 100)


def test_it_is_optional_and_changes_nothing_else(data: Any) -> None:
    X, Y = data.train.X, data.train.Y
    plain, keeping = lt.OneVsAll(max_iter=3), lt.OneVsAll(max_iter=3)
    plain.fit(X, Y)
    assert plain.kept_rows_ is None
    with pytest.raises(ValueError, match="keep_rows"):
        plain.add_labels(X[:2], [[0], []])
    keeping.fit(X, Y, keep_rows=10**6)
    assert keeping.kept_rows_.X.shape == X.shape
    assert keeping.predict_topk(X) == plain.predict_topk(X)
    again = lt.OneVsAll(max_iter=3).fit(X, Y, keep_rows=20).kept_rows_
    assert (again.X != lt.OneVsAll(max_iter=1).fit(X, Y, keep_rows=20).kept_rows_.X).nnz == 0
    assert keeping.fit(X, Y).kept_rows_ is None  # of another training
    for wrong in (0, -1, 2.5, "all"):
        with pytest.raises((ValueError, TypeError), match="keep_rows"):
            lt.OneVsAll().fit(X, Y, keep_rows=wrong)


def test_hostile_rows_are_refused(data: Any, tmp_path: Path) -> None:
    model = lt.OneVsAll(max_iter=1).fit(data.train.X, data.train.Y, keep_rows=5)
    for name, value in (("kept_X_indices", 300), ("kept_Y_indices", -1), ("kept_X_values", np.nan)):
        state = model._get_state()
        state.arrays[name] = state.arrays[name].copy()
        state.arrays[name][0] = value
        persist.save(tmp_path / name, state)
        with pytest.raises(ValueError):
            lt.load(tmp_path / name)
