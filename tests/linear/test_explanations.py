"""Explanations sum to what the model says, and name the features that made it say so."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows, weights_by_label

import longtail as lt

POST = ["noop", "l1-hinge", "l3-hinge", "sigmoid", "log-l3-hinge", "log-sigmoid"]


@pytest.fixture(scope="module")
def rows() -> tuple[sp.csr_matrix, sp.csr_matrix]:
    return make_rows(n=200, n_labels=60)


@pytest.fixture(scope="module")
def tree(rows: Any) -> lt.XRLinear:
    return lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[3, 8])).fit(*rows)


@pytest.fixture(scope="module")
def flat(rows: Any) -> lt.OneVsAll:
    return lt.OneVsAll().fit(*rows)


@pytest.mark.parametrize("post", [*POST, ["l3-hinge", "l3-hinge", "noop"]])
def test_parts_sum_to_the_score_that_search_gives(tree: Any, rows: Any, post: Any) -> None:
    tree.set_params(post_processor=post)
    X = rows[0] * 3.7  # scaled to unit length again, as search does
    for i in (0, 17, 199):
        top = tree.predict_topk(X[i], k=60, beam=None)
        for label, score in zip(top.indices[0].tolist(), top.scores[0].tolist(), strict=True):
            why = tree.explain(X[i], label)
            assert why.score == pytest.approx(score, rel=2e-4, abs=1e-6)
            assert why.baseline + why.shares.sum() == pytest.approx(why.path_score, abs=1e-9)
            link = np.exp if why.product else float
            assert why.score == pytest.approx(link(why.path_score))
            for level in why.levels:
                assert level.bias + level.contributions.sum() == pytest.approx(level.raw, abs=1e-9)
                assert level.baseline + level.shares.sum() == pytest.approx(level.value, abs=1e-9)


def test_raw_scores_are_those_of_the_layers(tree: Any, rows: Any) -> None:
    """Path and raw scores against the weights as matrices."""
    x = sp.hstack([rows[0][5], [[1.0]]]).tocsr()
    for label in (0, 31, 59):
        nodes = [level.node for level in tree.explain(rows[0][5], label).levels]
        assert tree.label_of_leaf_[nodes[-1]] == label
        for t in (1, 2):
            child_ptr = tree.tree_.child_ptr_[t]
            assert child_ptr[nodes[t - 1]] <= nodes[t] < child_ptr[nodes[t - 1] + 1]
        for level, layer, node in zip(
            tree.explain(rows[0][5], label).levels, tree.layers_, nodes, strict=True
        ):
            weights = layer.to_csr(30)[node]
            assert level.raw == pytest.approx((weights @ x.T).toarray().item(), abs=1e-5)


def test_contributions_are_weights_times_values(flat: Any, rows: Any) -> None:
    weights = weights_by_label(flat)
    row = rows[0][3].toarray()[0]
    why = flat.explain(row, 7)
    expected = weights[7, :-1] * row
    for feature, share in zip(why.features, why.shares, strict=True):
        assert share == pytest.approx(expected[feature], abs=1e-6)
    assert why.baseline == pytest.approx(weights[7, -1], abs=1e-6)
    assert set(np.flatnonzero(expected)) == set(why.features.tolist())
    ahead = [share for _, share in why.speaks_for(100)]
    behind = [share for _, share in why.speaks_against(100)]
    assert ahead == sorted(ahead, reverse=True) and all(share > 0 for share in ahead)
    assert behind == sorted(behind) and all(share < 0 for share in behind)


def test_an_empty_row_is_its_baseline(tree: Any) -> None:
    for post in POST:
        why = tree.set_params(post_processor=post).explain(np.zeros(30), 4)
        assert len(why.features) == 0
        assert why.path_score == why.baseline
        assert "label 4" in str(why)


def test_names_and_printing(rows: Any) -> None:
    model = lt.OneVsAll().fit(*rows).name_labels([f"topic {i}" for i in range(60)])
    words = [f"word{i}" for i in range(30)]
    why = model.explain(rows[0][0], "topic 3", feature_names=words)
    assert why.label == 3
    shown = str(why)
    assert "topic 3" in shown and "path score" in shown
    assert why.speaks_for(1)[0][0] in words and why.speaks_for(1)[0][0] in shown
    assert json.loads(json.dumps(why.to_dict()))["score"] == why.score
    profile = model.label_profile("topic 3", feature_names=words)
    assert "topic 3" in str(profile) and profile.strongest(1)[0][0] in words
    assert all(name.startswith("topic ") for name, _ in profile.neighbours())


def test_profile_against_the_weight_matrix(flat: Any, tree: Any) -> None:
    for model in (flat, tree):
        weights = weights_by_label(model)
        own = weights[9, :-1]
        profile = model.label_profile(9, n_nearest=60)
        np.testing.assert_allclose(profile.weights, own[profile.features], rtol=1e-6)
        assert len(profile.weights) == np.count_nonzero(own)
        assert (np.diff(profile.weights) <= 0).all()
        lengths = np.linalg.norm(weights[:, :-1], axis=1)
        cosine = weights[:, :-1] @ own / np.where(lengths, lengths, 1) / np.linalg.norm(own)
        np.testing.assert_allclose(profile.similarities, cosine[profile.nearest], atol=1e-5)
        assert 9 not in profile.nearest
        assert (np.diff(profile.similarities) <= 0).all()
    assert len(flat.label_profile(9, n_nearest=60).nearest) > len(profile.nearest)
    leaf = int(np.flatnonzero(tree.label_of_leaf_ == 9)[0])
    child_ptr = tree.tree_.child_ptr_[-1]
    parent = np.searchsorted(child_ptr, leaf, side="right") - 1
    group = tree.label_of_leaf_[child_ptr[parent] : child_ptr[parent + 1]]
    assert set(profile.nearest.tolist()) <= set(group.tolist())
    assert len(profile.groups) == 2


def test_a_level_of_several_chunks() -> None:
    n_labels = 5000
    rows = np.arange(n_labels)
    X = sp.csr_matrix((np.ones(n_labels, np.float32), rows % 300, np.arange(n_labels + 1)))
    Y = sp.csr_matrix((np.ones(n_labels, np.float32), rows, np.arange(n_labels + 1)))
    model = lt.OneVsAll(threshold=0).fit(X, Y)
    for label in (0, 4321, 4999):
        top = model.predict_topk(X[label], k=1, include=[label])
        why = model.explain(X[label], label)
        assert why.score == pytest.approx(float(top.scores[0, 0]), abs=1e-5)
        weights = model.coef_[:, :-1].toarray().astype(np.float64)
        lengths = np.linalg.norm(weights, axis=1) * np.linalg.norm(weights[label])
        cosine = np.delete(weights @ weights[label] / lengths, label)
        profile = model.label_profile(label, n_nearest=20)
        np.testing.assert_allclose(profile.similarities, -np.sort(-cosine)[:20], atol=1e-5)


@pytest.mark.parametrize(
    ("x", "label", "error", "message"),
    [
        (np.zeros((2, 30)), 0, ValueError, "single row"),
        (np.zeros(29), 0, ValueError, "29 features"),
        (np.full(30, np.nan), 0, ValueError, "NaN"),
        (np.zeros(30), 60, ValueError, "label 60 does not exist"),
        (np.zeros(30), -1, ValueError, "label -1 does not exist"),
        (np.zeros(30), 0.5, TypeError, "an id or a name"),
        (np.zeros(30), "cat", ValueError, "knows no names"),
    ],
)
def test_refusals(flat: Any, x: Any, label: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        flat.explain(x, label)
    with pytest.raises(ValueError, match="feature_names"):
        flat.explain(np.zeros(30), 0, feature_names=["a"])
    with pytest.raises(ValueError, match="not fitted"):
        lt.OneVsAll().explain([1.0], 0)
