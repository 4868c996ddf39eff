"""Beam search against scores written out in NumPy from the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import all_scores, assert_ranks, make_rows, transform
from numpy.testing import assert_allclose

import longtail as lt
from longtail.linear.search.post_processing import post_processors

POST = ["noop", "l1-hinge", "l3-hinge", "l16-hinge", "sigmoid"]
POST += ["log-l1-hinge", "log-l3-hinge", "log-sigmoid"]


@pytest.fixture(scope="module")
def model() -> lt.XRLinear:
    X, Y = make_rows(n=200, n_labels=60)
    return lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[3, 8]), threshold=0.05).fit(X, Y)


@pytest.fixture(scope="module")
def X() -> sp.csr_matrix:
    return make_rows(n=200, n_labels=60)[0]


def test_transform_values() -> None:
    """Card values of the cubic hinge: one level, weights set so that z is the feature itself."""
    identity = lt.XRLinear(
        tree=lt.tree.LabelTree(leaf=10), bias=0.0, normalize=False, post_processor="l3-hinge"
    ).fit([[1.0], [-1.0]], [[0], []])
    weight = float(identity.layers_[0].to_csr(1)[0, 0])
    z = np.array([[1.0], [0.5], [0.0], [-1.0]])
    scores = identity.predict_topk(z / weight, k=1).scores[:, 0]
    assert_allclose(scores, [1, 0.8825, 0.3679, 3.35e-4], rtol=2e-3)
    assert_allclose(scores, transform("l3-hinge", z[:, 0]), rtol=1e-5)
    for name in POST:
        identity.set_params(post_processor=name)
        scores = identity.predict_topk(z / weight, k=1).scores[:, 0]
        assert_allclose(scores, transform(name, z[:, 0]), rtol=1e-5, atol=1e-30, err_msg=name)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("post", [*POST, ["l3-hinge", "l3-hinge", "noop"], ["l1-hinge"] * 3])
def test_exact_search_is_brute_force(model: Any, X: Any, post: Any, dense: bool) -> None:
    model.set_params(post_processor=post)
    rows = X.toarray() if dense else X
    expected = all_scores(model, X, post)
    for k in (1, 5, 60):
        exact = model.predict_topk(rows, k=k, beam=None)
        assert_ranks(exact, expected)
        assert model.predict_topk(rows, k=k, beam=1000) == exact
        assert model.predict_topk(rows, k=k, beam=[3, 8]) == exact


@pytest.mark.parametrize("post", POST)
@pytest.mark.parametrize("beam", [1, 2, [2, 5]])
def test_narrow_beams_keep_the_best_nodes(model: Any, X: Any, post: str, beam: Any) -> None:
    model.set_params(post_processor=post)
    expected = all_scores(model, X, post, [beam, beam] if isinstance(beam, int) else beam)
    top = model.predict_topk(X, k=60, beam=beam)
    found = np.full_like(expected, -np.inf)
    answered = top.indices >= 0
    found[np.nonzero(answered)[0], top.indices[answered]] = top.scores[answered]
    assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_sparse_and_dense_queries_agree(model: Any, X: Any) -> None:
    for post in POST:
        model.set_params(post_processor=post)
        sparse, dense = model.predict_topk(X, k=60), model.predict_topk(X.toarray(), k=60)
        assert_allclose(sparse.scores, dense.scores, rtol=1e-4, atol=1e-6)


def test_answers_do_not_depend_on_k(X: Any) -> None:
    """Confident labels saturate at 1 and tie; products that vanish tie at 0."""
    Y = make_rows(n=200, n_labels=60)[1]
    for C in (1.0, 1000.0):
        model = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[8]), C=C, tolerance=0.01).fit(X, Y)
        for post in POST:
            model.set_params(post_processor=post)
            whole = model.predict_topk(X, k=60, beam=None)
            ties = (whole.scores[:, 1:] == whole.scores[:, :-1]) & (whole.indices[:, 1:] >= 0)
            assert (whole.indices[:, 1:] > whole.indices[:, :-1])[ties].all(), post
            for k in (1, 2, 5, 30):
                assert model.predict_topk(X, k=k, beam=None) == whole.head(k), (post, C, k)


def test_scores_far_below_zero(X: Any) -> None:
    """Without unit rows, z of -1e6 and hinge powers that overflow: no NaN, no label lost."""
    Y = make_rows(n=200, n_labels=60)[1]
    model = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[8]), normalize=False, beam=None).fit(
        X, Y
    )
    for factor in (1e3, 1e6, 1e30, 3e38):
        for post in [*POST, "log-l16-hinge"]:
            model.set_params(post_processor=post)
            for rows in (X * np.float32(factor), X.toarray() * np.float32(factor)):
                top = model.predict_topk(rows, k=60)
                assert not np.isnan(top.scores).any()
                if factor <= 1e6:
                    assert (top.indices >= 0).all(), (post, factor)
                    assert (np.sort(top.indices, axis=1) == np.arange(60)).all()


def test_changing_the_post_processor_of_a_fitted_model(model: Any, X: Any) -> None:
    model.set_params(post_processor="noop")
    raw = model.predict_topk(X, beam=None)
    model.post_processor = "sigmoid"
    assert (model.predict_topk(X, beam=None).scores != raw.scores).any()
    model.post_processor = ["noop"] * 3
    assert model.predict_topk(X, beam=None) == raw


def test_mixed_post_processors_are_refused(model: Any, X: Any) -> None:
    for names, message in [
        (["l3-hinge", "sigmoid", "sigmoid"], "mixes families"),
        (["noop", "l3-hinge", "l3-hinge"], "mixes families"),
        (["l3-hinge", "log-l3-hinge", "noop"], "mixes families"),
        (["l3-hinge"], "names 1 levels, but the tree has 3"),
        ("l17-hinge", "unknown post_processor 'l17-hinge'"),
        ("l0-hinge", "unknown post_processor"),
        ("softmax", "use noop, sigmoid"),
    ]:
        with pytest.raises(ValueError, match=message):
            post_processors(names, 3)
        with pytest.raises(ValueError, match=message):
            model.set_params(post_processor=names).predict_topk(X)
