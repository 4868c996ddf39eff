"""Label filters inside beam search: deep trees, narrow beams, long lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import all_scores, assert_ranks, make_rows

import longtail as lt


@pytest.fixture(scope="module")
def X() -> sp.csr_matrix:
    return make_rows(n=200, n_labels=60)[0]


@pytest.fixture(scope="module")
def model() -> lt.XRLinear:
    X, Y = make_rows(n=200, n_labels=60)
    return lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[3, 8, 20])).fit(X, Y)


@pytest.mark.parametrize("post", ["noop", "l3-hinge", "sigmoid", "log-l3-hinge"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_exact_search_under_a_filter(model: Any, X: Any, post: str, share: float) -> None:
    model.set_params(post_processor=post)
    allowed = np.random.default_rng(1).random((200, 60)) < share
    allowed[:, 3:9] = True
    scores = np.where(allowed, all_scores(model, X, post), -np.inf)
    for k in (1, 6):
        assert_ranks(model.predict_topk(X, k=k, beam=None, include=allowed), scores)
        assert_ranks(model.predict_topk(X, k=k, beam=None, exclude=~allowed), scores)
    every = allowed[0] & (np.arange(60) != 4)
    scores = np.where(every, all_scores(model, X, post), -np.inf)
    top = model.predict_topk(X, k=5, beam=None, include=allowed[0], exclude=[4])
    assert_ranks(top, scores)


def test_a_narrow_beam_widens_no_further_than_it_must(model: Any, X: Any) -> None:
    """Where the beam holds k allowed labels anyway, the answer is that of the nodes it holds."""
    model.set_params(post_processor="l3-hinge")
    plain = model.predict_topk(X, k=2, beam=4)
    scores = all_scores(model, X, "l3-hinge", beams=[3, 4, 4])
    filtered = model.predict_topk(X, k=2, beam=4, exclude=[])
    full = (plain.indices >= 0).all(axis=1)
    assert full.all()
    assert filtered == plain
    assert_ranks(filtered, scores)


@pytest.mark.parametrize("beam", [1, 2, [1, 1, 5]])
def test_every_beam_brings_k(model: Any, X: Any, beam: Any) -> None:
    rng = np.random.default_rng(2)
    for n_allowed in (1, 5, 30, 60):
        lists = [rng.choice(60, n_allowed, replace=False) for _ in range(200)]
        for k in (1, 10, 60):
            for found in (
                model.predict_topk(X, k=k, beam=beam, include=lists),
                model.predict_topk(X, k=k, beam=beam, include=lists[0]),
            ):
                assert ((found.indices >= 0).sum(axis=1) == min(k, n_allowed)).all()


def test_chunks_without_an_allowed_label_are_skipped() -> None:
    """A level wider than a chunk (4096), filtered to the labels of its last chunk."""
    n_labels = 9000
    rows = np.arange(n_labels)
    X = sp.csr_matrix((np.ones(n_labels, np.float32), rows % 300, np.arange(n_labels + 1)))
    Y = sp.csr_matrix((np.ones(n_labels, np.float32), rows, np.arange(n_labels + 1)))
    flat = lt.OneVsAll(threshold=0).fit(X, Y)
    last = flat.label_of_leaf_[-5:]
    top = flat.predict_topk(X[:50], k=5, include=last)
    assert (np.sort(top.indices, axis=1) == np.sort(last)).all()
    full = flat.predict_topk(X[:50], k=n_labels)
    kept = [ids[np.isin(ids, last)].tolist() for ids in full.indices]
    assert top.indices.tolist() == kept
