"""Chunks of 4096 children and the directory of features: every weight is found again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_cases import all_scores, assert_ranks

import longtail as lt


def many_labels(n_labels: int = 5000, n: int = 100, d: int = 12) -> tuple[Any, Any]:
    """Every row carries the labels i, i + n, i + 2n, …."""
    rng = np.random.default_rng(3)
    X = (rng.random((n, d)) < 0.4) * rng.random((n, d)) + 0.01
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    labels = np.arange(n_labels)
    Y = sp.csr_matrix((np.ones(n_labels), (labels % n, labels)), shape=(n, n_labels))
    return sp.csr_matrix(X.astype(np.float32)), Y.astype(np.float32)


@pytest.mark.parametrize("n_labels", [4095, 4096, 4097, 5000])
def test_a_parent_with_more_children_than_a_chunk_holds(n_labels: int) -> None:
    X, Y = many_labels(n_labels)
    model = lt.XRLinear(tree=lt.tree.LabelTree(leaf=10_000), tolerance=1.0, threshold=0.01).fit(
        X, Y
    )
    children = model.layers_[0].arrays["chunk_children"]
    assert np.diff(children).max() <= 4096 and len(children) == 2 + (n_labels > 4096)
    for post in ("noop", "l3-hinge"):
        model.set_params(post_processor=post)
        expected = all_scores(model, X, post)
        for rows in (X, X.toarray()):
            assert_ranks(model.predict_topk(rows, k=20), expected)
        assert_ranks(model.predict_topk(X[:3], k=n_labels), expected[:3])


def test_inner_levels_wider_than_a_chunk() -> None:
    X, Y = many_labels()
    tree = lt.tree.LabelTree(kind="random", level_sizes=[2, 4500])
    model = lt.XRLinear(tree=tree, tolerance=1.0, beam=None, threshold=0.01).fit(X, Y)
    assert len(model.layers_[2].arrays["parent_chunks"]) == 4501
    assert_ranks(model.predict_topk(X, k=20), all_scores(model, X, "l3-hinge"))


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_the_directory_finds_every_feature(data: st.DataObject) -> None:
    """Any width, any few features in use, the first and the last among them."""
    d = data.draw(st.one_of(st.integers(1, 40), st.sampled_from([64, 1000, 1024, 1025, 65_537])))
    inside = data.draw(st.lists(st.integers(0, d - 1), max_size=12))
    used = np.unique([0, d - 1, *inside])
    rng = np.random.default_rng(len(used) + d)
    n = 12
    values = rng.random((n, len(used))).astype(np.float32) + 0.1
    X = sp.csr_matrix(
        (values.ravel(), (np.repeat(np.arange(n), len(used)), np.tile(used, n))), shape=(n, d)
    )
    Y = np.eye(4, dtype=np.float32)[np.arange(n) % 4]
    model = lt.XRLinear(
        tree=lt.tree.LabelTree(leaf=10),
        threshold=0.0,
        normalize=False,
        post_processor="noop",
        n_jobs=1,
    ).fit(X, Y)
    # Queries hold features of the model, others, single ones, and none.
    others = rng.integers(0, d, 6)
    queries = sp.lil_matrix((len(used) + 3, d), dtype=np.float32)
    for i, feature in enumerate(used):
        queries[i, feature] = 1.0
    queries[len(used), others] = 0.5
    queries[len(used) + 1, np.unique([*used, *others])] = 0.25
    queries = queries.tocsr()
    expected = all_scores(model, queries, "noop")
    assert_ranks(model.predict_topk(queries, k=4), expected)
    assert_ranks(model.predict_topk(queries.toarray(), k=4), expected)
