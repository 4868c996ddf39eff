"""A tree without inner nodes is one-vs-all, on any machine with any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import assert_ranks, make_rows, weights_by_label

import longtail as lt
from longtail._native import core

TIGHT: dict[str, Any] = {"C": 1.0, "tolerance": 1e-4, "max_iter": 20_000, "threshold": 0.0}


def one_level(**params: Any) -> lt.XRLinear:
    return lt.XRLinear(tree=lt.tree.LabelTree(leaf=10_000), post_processor="noop", **params)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize(
    "params",
    [{}, {"C": 3.0}, {"C": 0.5, "positive_weight": 4.0, "negative_weight": 0.25}, {"bias": 2.0}],
)
def test_one_level_equals_one_vs_all(loss: str, params: dict[str, Any]) -> None:
    X, Y = make_rows(unlabelled=15)  # rows without labels are negatives at the root too
    flat = lt.OneVsAll(loss=loss, **{**TIGHT, **params}).fit(X, Y)
    tree = one_level(loss=loss, **{**TIGHT, **params}).fit(X, Y)
    assert len(tree.layers_) == 1
    # The optimum is unique for both; at this tolerance descent on the hinge ends further from it.
    limit = 1e-3 if loss == "squared_hinge" else 1e-2
    np.testing.assert_allclose(weights_by_label(tree), flat.coef_.toarray(), atol=limit)
    scores = sp.hstack([X, np.ones((X.shape[0], 1))]) @ flat.coef_.T
    assert_ranks(flat.predict_topk(X, k=24), scores.toarray(), 1e-4)
    mine, its = (m.predict_topk(X, k=24).to_csr().toarray() for m in (tree, flat))
    np.testing.assert_allclose(mine, its, atol=2 * limit)
    best = flat.predict_topk(X, k=2)
    clear = best.scores[:, 0] - best.scores[:, 1] > 4 * limit
    assert clear.mean() > 0.5
    top = tree.predict_topk(X, k=1).indices
    np.testing.assert_array_equal(top[clear], best.indices[clear, :1])


def test_rows_without_labels_matter() -> None:
    X, Y = make_rows(unlabelled=30)
    whole = one_level(**TIGHT).fit(X, Y)
    labelled = one_level(**TIGHT).fit(X[30:], Y[30:])
    assert abs(weights_by_label(whole) - weights_by_label(labelled)).max() > 0.05


@pytest.mark.parametrize("make", [lt.OneVsAll, one_level])
@pytest.mark.parametrize("threshold", [0.05, 0.6])
def test_threshold_drops_exactly_the_small_weights(make: Any, threshold: float) -> None:
    X, Y = make_rows()
    full = make(**{**TIGHT, "bias": 0.1}).fit(X, Y)
    pruned = make(**{**TIGHT, "bias": 0.1, "threshold": threshold}).fit(X, Y)
    weights = weights_by_label(full)
    raw = weights / np.r_[np.ones(X.shape[1]), 0.1].astype(np.float32)  # bias times its feature
    expected = np.where(abs(raw) < threshold, 0, weights)
    np.testing.assert_array_equal(weights_by_label(pruned), expected)
    if threshold > 0.1:
        assert 0 < (abs(raw[:, -1]) < threshold).sum() < 24, "the case tests the bias as well"
    assert (expected[:, :-1] == 0).sum() > (weights[:, :-1] == 0).sum()


def test_no_bias() -> None:
    X, Y = make_rows()
    model = lt.OneVsAll(bias=0.0).fit(X, Y)
    assert abs(model.coef_[:, -1]).max() == 0
    assert model.predict_topk(sp.csr_matrix((1, 30)), k=2).scores.tolist() == [[0, 0]]


def test_weights_per_label() -> None:
    X, Y = make_rows()
    weights = np.linspace(0.5, 2, 24)
    each = lt.OneVsAll(positive_weight=weights, **TIGHT).fit(X, Y).coef_.toarray()
    for label in (0, 7, 23):
        one = lt.OneVsAll(positive_weight=weights[label], **TIGHT).fit(X, Y).coef_.toarray()
        np.testing.assert_allclose(each[label], one[label], atol=1e-3)
    assert abs(each - lt.OneVsAll(**TIGHT).fit(X, Y).coef_).max() > 0.01


def test_a_model_with_weights_per_label_is_saved(tmp_path: Any) -> None:
    X, Y = make_rows()
    model = lt.OneVsAll(positive_weight=np.linspace(0.5, 2, 24)).fit(X, Y)
    model.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    assert again.predict_topk(X) == model.predict_topk(X)
    assert again.fit(X, Y).predict_topk(X) == model.predict_topk(X)


@pytest.mark.parametrize("negatives", ["tfn", "tfn+man"])
def test_any_number_of_threads_gives_the_same_weights(negatives: str) -> None:
    X, Y = make_rows(n=300, n_labels=60)
    models = [
        lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[3, 7]), negatives=negatives, n_jobs=n).fit(
            X, Y
        )
        for n in (1, 2, 4)
    ]
    first = models[0]
    for other in models[1:]:
        assert other.predict_topk(X, k=60) == first.predict_topk(X, k=60)
        for a, b in zip(first.layers_, other.layers_, strict=True):
            for name, array in a.arrays.items():
                np.testing.assert_array_equal(array, b.arrays[name], err_msg=name)


def test_instruction_sets_find_the_same_optimum() -> None:
    X, Y = make_rows()
    before, found = core.active_isa(), {}
    try:
        for isa in ("portable", "avx2", "avx512"):
            try:
                core.set_isa(isa)
            except ValueError:  # not on this machine
                continue
            found[isa] = lt.OneVsAll(**TIGHT).fit(X, Y).coef_.toarray()
    finally:
        core.set_isa(before)
    for isa, weights in found.items():
        np.testing.assert_allclose(weights, found["portable"], atol=1e-3, err_msg=isa)
