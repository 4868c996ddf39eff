"""Labels that come, go and change, with all others left as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows

import longtail as lt

MAKERS = {
    "OneVsAll": lt.OneVsAll,
    "two levels": lambda **p: lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[4]), **p),
    "three levels": lambda **p: lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[2, 4]), **p),
}
# Weights that do not depend on where the solver starts.
TIGHT: dict[str, Any] = {"tolerance": 1e-4, "max_iter": 10_000, "threshold": 0.0}


def weights(model: Any) -> np.ndarray:
    """Weights of the last level by label."""
    out: np.ndarray = model.layers_[-1].to_csr(model.n_features_in_).toarray()
    return out[np.argsort(model.label_of_leaf_)]


@pytest.fixture(scope="module")
def data() -> tuple[sp.csr_matrix, sp.csr_matrix]:
    return make_rows(n=400, n_labels=40)


@pytest.mark.parametrize("maker", MAKERS)
def test_old_labels_stay_and_new_ones_are_found(maker: str, data: Any) -> None:
    X, Y = data
    old, new = Y[:, :30], Y[:, 30:]
    model = MAKERS[maker]().fit(X, old)
    before = weights(model)
    model.add_labels(X, new, Y_old=old)
    assert model.n_labels_ == 40
    np.testing.assert_array_equal(weights(model)[:30], before)
    assert sorted(model.label_of_leaf_.tolist()) == list(range(40))
    found = model.predict_topk(X, k=5, beam=None) if maker != "OneVsAll" else model.predict_topk(X)
    hits = found.to_csr(binary=True)[:, 30:].multiply(new).sum() / new.sum()
    assert hits > 0.7
    whole = MAKERS[maker]().fit(X, Y)
    assert model.score(X, Y, k=3) > 0.9 * whole.score(X, Y, k=3)


def test_one_vs_all_added_is_one_vs_all_trained(data: Any) -> None:
    """The rows are the same, so is the problem of a new label; only blocks and seeds differ."""
    X, Y = data
    whole = lt.OneVsAll(**TIGHT).fit(X, Y)
    grown = lt.OneVsAll(**TIGHT).fit(X, Y[:, :30]).add_labels(X, Y[:, 30:], Y_old=Y[:, :30])
    np.testing.assert_allclose(weights(grown), weights(whole), atol=2e-3)


def test_negatives_keep_new_labels_at_bay(data: Any) -> None:
    X, Y = data
    old, new = Y[:, :30], Y[:, 30:]
    own = np.flatnonzero(np.diff(new.indptr))
    rest = np.flatnonzero(np.diff(new.indptr) == 0)
    given = lt.OneVsAll().fit(X, old)
    given.add_labels(X[own], new[own], negatives=(X[rest], old[rest]))
    alone = lt.OneVsAll().fit(X, old).add_labels(X[own], new[own], Y_old=old[own])
    flooding = [(m.predict_topk(X[rest], k=1).indices >= 30).mean() for m in (given, alone)]
    assert flooding[0] < flooding[1]
    with pytest.raises(ValueError, match="negatives"):
        alone.add_labels(X[own], new[own])


def test_a_node_that_grew_is_halved(data: Any) -> None:
    X, Y = data
    model = MAKERS["three levels"]().fit(X, Y[:, :20])
    assert [layer.n_children for layer in model.layers_] == [2, 4, 20]
    before = weights(model)
    model.add_labels(X, Y[:, 20:], Y_old=Y[:, :20], split_above=8)
    sizes = np.diff(model.layers_[-1].child_ptr)
    assert sizes.max() <= 8 and len(sizes) > 4 and sizes.sum() == 40
    assert model.tree_.level_sizes_ == [layer.n_children for layer in model.layers_]
    np.testing.assert_array_equal(weights(model)[:20], before)
    assert model.score(X, Y, k=2) > 0.5


@pytest.mark.parametrize("maker", MAKERS)
def test_removed_labels_are_gone(maker: str, data: Any, tmp_path: Path) -> None:
    X, Y = data
    model = MAKERS[maker]().fit(X, Y).name_labels([f"n{i}" for i in range(40)])
    before = weights(model)
    gone = [0, 7, 8, 39] if maker == "OneVsAll" else model.tree_.label_of_leaf_[:15].tolist()
    model.remove_labels(gone)
    kept = np.setdiff1d(np.arange(40), gone)
    np.testing.assert_array_equal(weights(model), before[kept])
    assert list(model.label_names_) == [f"n{i}" for i in kept]
    assert (model.predict_topk(X, k=len(kept)).indices >= 0).sum() > 0
    model.save(tmp_path / "m")
    assert lt.load(tmp_path / "m").predict_topk(X) == model.predict_topk(X)
    with pytest.raises(ValueError, match="nothing to answer"):
        model.remove_labels(range(model.n_labels_))
    with pytest.raises(ValueError, match="ids from 0"):
        model.remove_labels([len(kept)])


@pytest.mark.parametrize("maker", MAKERS)
def test_changed_labels_only(maker: str, data: Any) -> None:
    X, Y = data
    model = MAKERS[maker]().fit(X, Y)
    before = weights(model)
    changed = Y.tolil()
    changed[:50, 5] = 0
    changed = changed.tocsr()
    changed.eliminate_zeros()
    model.partial_fit(X, changed, labels=[5])
    after = weights(model)
    moved = np.flatnonzero((after != before).any(axis=1))
    assert moved.tolist() == [5]


@pytest.mark.parametrize("maker", MAKERS)
def test_the_same_labels_again_change_nothing(maker: str, data: Any) -> None:
    X, Y = data
    model = MAKERS[maker](**TIGHT).fit(X, Y)
    before = weights(model)
    np.testing.assert_allclose(weights(model.partial_fit(X, Y)), before, atol=2e-3)


def test_names_and_saving_after_growth(data: Any, tmp_path: Path) -> None:
    X, Y = data
    model = MAKERS["two levels"]().fit(X, Y[:, :30]).name_labels([f"n{i}" for i in range(30)])
    with pytest.raises(ValueError, match="names are missing"):
        model.add_labels(X, Y[:, 30:], Y_old=Y[:, :30])
    names = [f"n{i}" for i in range(30, 40)]
    model.add_labels(X, Y[:, 30:], Y_old=Y[:, :30], names=names)
    model.save(tmp_path / "m")
    loaded = lt.load(tmp_path / "m")
    assert loaded.predict_topk(X, include=["n35", "n2"], k=2) == model.predict_topk(
        X, include=[35, 2], k=2
    )


def test_labels_without_rows_and_nothing_new(data: Any) -> None:
    X, Y = data
    model = MAKERS["two levels"]().fit(X, Y)
    model.add_labels(X, sp.csr_matrix((400, 3)), Y_old=Y)
    assert model.n_labels_ == 43
    assert not (model.predict_topk(X, k=3).indices >= 40).any()
    model.add_labels(X, sp.csr_matrix((400, 0)), Y_old=sp.csr_matrix((400, 43)))
    assert model.n_labels_ == 43
