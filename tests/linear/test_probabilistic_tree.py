"""Logistic loss and sigmoids along the path: a probabilistic label tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import assert_ranks, make_rows

import longtail as lt


@pytest.fixture(scope="module")
def tree() -> lt.XRLinear:
    X, Y = make_rows(n_labels=40)
    model = lt.XRLinear(
        tree=lt.tree.LabelTree(level_sizes=[3, 8]),
        loss="logistic",
        post_processor="sigmoid",
        beam=None,
    )
    return model.fit(X, Y)


def test_probabilities_follow_the_chain_rule(tree: lt.XRLinear) -> None:
    """P(label) = P(node below the root) P(node | its parent) P(label | its parent)."""
    X, _ = make_rows(n_labels=40)
    rows = sp.hstack([X, np.ones((X.shape[0], 1))]).tocsr()
    conditional = [
        1 / (1 + np.exp(-(rows @ layer.to_csr(X.shape[1]).T).toarray())) for layer in tree.layers_
    ]
    expected = np.ones((X.shape[0], 40))
    for level, probability in enumerate(conditional):
        expected *= probability[:, tree.tree_.ancestors(level)]
    top = tree.predict_proba_topk(X, k=40)
    assert_ranks(top, expected)
    assert ((top.scores >= 0) & (top.scores <= 1)).all()


def test_a_child_is_never_more_probable_than_its_parent(tree: lt.XRLinear) -> None:
    X, _ = make_rows(n_labels=40)
    labels = tree.predict_proba_topk(X, k=40).to_csr().toarray()
    upper = lt.XRLinear(post_processor="sigmoid", beam=None)
    upper.n_features_in_, upper.n_labels_ = X.shape[1], 8
    upper._set_layers(tree.layers_[:2], np.arange(8, dtype=np.int32))
    nodes = upper.predict_topk(X, k=8).to_csr().toarray()
    assert (labels <= nodes[:, tree.tree_.ancestors(1)] * (1 + 1e-5)).all()


@pytest.mark.parametrize(
    "params", [{}, {"loss": "logistic"}, {"post_processor": "sigmoid"}, {"loss": "hinge"}]
)
def test_other_scores_are_no_probabilities(params: dict[str, Any]) -> None:
    X, Y = make_rows()
    model = lt.XRLinear(**params)
    assert not hasattr(model, "predict_proba_topk")
    with pytest.raises(AttributeError, match="not probabilities"):
        _ = model.fit(X, Y).predict_proba_topk


def test_one_level_is_logistic_regression() -> None:
    """The model's log-loss is the smallest there is: scikit-learn's, with a regularised bias."""
    from sklearn.linear_model import LogisticRegression

    X, Y = make_rows()
    model = lt.XRLinear(
        tree=lt.tree.LabelTree(leaf=100),
        C=1.0,
        loss="logistic",
        post_processor="sigmoid",
        tolerance=1e-5,
        max_iter=1000,
        threshold=0.0,
    ).fit(X, Y)
    probability = model.predict_proba_topk(X, k=24).to_csr().toarray()
    rows = sp.hstack([X, np.ones((X.shape[0], 1))]).tocsr()
    for label in (0, 11, 23):
        y = Y[:, label].toarray().ravel()
        peer = LogisticRegression(fit_intercept=False, tol=1e-8, max_iter=1000).fit(rows, y)
        np.testing.assert_allclose(
            probability[:, label], peer.predict_proba(rows)[:, 1], rtol=0.01, atol=1e-3
        )
