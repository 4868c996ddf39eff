"""Rules of combination against sums written out label by label, and the estimator around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail as lt
from longtail import TopK
from longtail._models import from_state
from longtail.ensemble import combine
from longtail.exceptions import ModelFormatError

RULES = ["mean", "rank", "softmax", "sigmoid"]


def random_top(rng: np.random.Generator, n: int, k: int, n_labels: int, sign: float) -> TopK:
    """Random rankings, some cut short; scores are multiples of 1/8, so that sums tie exactly."""
    scores = rng.integers(-16, 17, (n, n_labels)) / 8
    scores = -abs(scores) if sign < 0 else abs(scores) if sign > 0 else scores
    top = TopK.from_scores(scores.astype(np.float32), k)
    for row in range(n):
        keep = rng.integers(0, k + 1)
        top.indices[row, keep:] = -1
        top.scores[row, keep:] = -np.inf
    return top


def reference(tops: list[TopK], k: int, rule: str) -> list[list[tuple[int, float]]]:
    """(label, score) of the best k, row by row and label by label."""
    out = []
    for row in range(len(tops[0])):
        answers = []
        for top in tops:
            keep = top.indices[row] >= 0
            scores = top.scores[row][keep].astype(np.float64)
            if rule == "rank":
                values = (top.k - np.arange(len(scores))) / top.k
            elif rule == "softmax":
                values = np.exp(scores) / np.exp(scores).sum() if len(scores) else scores
            elif rule == "sigmoid":
                values = 1 / (1 + np.exp(-scores))
            else:
                values = scores
            missing = min(0.0, *scores) if rule == "mean" and len(scores) else 0.0
            answers.append((dict(zip(top.indices[row][keep].tolist(), values)), missing))  # noqa: B905
        labels = {label for answer, _ in answers for label in answer}
        total = {
            label: sum(answer.get(label, missing) for answer, missing in answers) / len(tops)
            for label in labels
        }
        out.append(sorted(total.items(), key=lambda item: (-np.float32(item[1]), item[0]))[:k])
    return out


def check(tops: list[TopK], k: int, rule: str) -> None:
    top = combine(tops, k, rule)
    assert top.indices.shape == (len(tops[0]), k)
    for row, expected in enumerate(reference(tops, k, rule)):
        scores = np.array([score for _, score in expected])
        np.testing.assert_allclose(top.scores[row, : len(scores)], scores, rtol=1e-5, atol=1e-6)
        labels = [label for label, _ in expected]
        if rule == "mean":  # sums are exact here, ties included
            assert top.indices[row, : len(labels)].tolist() == labels
        assert len(set(top.indices[row, : len(labels)].tolist()) - {-1}) == len(labels)
        assert (top.indices[row, len(labels) :] == -1).all()
        assert (top.scores[row, len(labels) :] == -np.inf).all()


@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_every_rule_is_its_definition(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, n_labels = data.draw(st.integers(0, 6)), data.draw(st.integers(1, 9))
    sign = data.draw(st.sampled_from([-1, 0, 1]))
    tops = [
        random_top(rng, n, data.draw(st.integers(1, n_labels)), n_labels, sign)
        for _ in range(data.draw(st.sampled_from([1, 2, 4])))
    ]
    check(tops, data.draw(st.integers(1, 12)), data.draw(st.sampled_from(RULES)))


def test_labels_whose_sum_is_zero_remain_candidates() -> None:
    """The lowest answer of every member, and scores that cancel."""
    a = TopK([[0, 1]], [[-1.0, -2.0]], n_labels=4)
    assert combine([a, a], k=4).indices.tolist() == [[0, 1, -1, -1]]
    b = TopK([[1, 0]], [[2.0, 1.0]], n_labels=4)
    both = combine([a, b], k=4)
    assert both.indices.tolist() == [[0, 1, -1, -1]]
    assert both.scores[0, :2].tolist() == [0, 0]


def test_a_missing_label_is_no_praise_among_negative_scores() -> None:
    a = TopK([[0, 1]], [[-1.0, -4.0]], n_labels=3)
    b = TopK([[0, 2]], [[-1.0, -2.0]], n_labels=3)
    top = combine([a, b], k=3)
    assert top.indices.tolist() == [[0, 1, 2]]
    assert top.scores.tolist() == [[-1.0, -3.0, -3.0]]  # (-4 - 2) / 2 and (-4 - 2) / 2


@pytest.mark.parametrize("rule", RULES)
def test_extreme_scores(rule: str) -> None:
    """Logarithms of products that vanished are -inf; sums of the largest floats stay finite."""
    a = TopK([[0, 1, 2]], [[-1.0, -2.0, -np.inf]], n_labels=4)
    b = TopK([[1, 0, 3]], [[-1.0, -3.0, -5.0]], n_labels=4)
    top = combine([a, b], k=4, rule=rule)
    assert sorted(top.indices[0].tolist()) == [0, 1, 2, 3]
    assert not np.isnan(top.scores).any()
    if rule == "mean":
        assert top.scores[0, :2].tolist() == [-1.5, -2.0]
    large = TopK([[0, 1]], [[3e38, -3e38]], n_labels=2)
    top = combine([large, large, large], k=2, rule=rule)
    assert top.indices.tolist() == [[0, 1]] and np.isfinite(top.scores).all()


def test_refusals() -> None:
    a = TopK([[0]], [[1.0]], n_labels=3)
    with pytest.raises(ValueError, match="rule must be one of mean, rank, softmax, sigmoid"):
        combine([a], k=1, rule="median")
    with pytest.raises(ValueError, match="nothing to combine"):
        combine([], k=1)
    with pytest.raises(ValueError, match="same rows and the same labels"):
        combine([a, TopK([[0]], [[1.0]], n_labels=4)], k=1)
    with pytest.raises(ValueError, match="same rows and the same labels"):
        combine([a, TopK([[0], [1]], [[1.0], [1.0]], n_labels=3)], k=1)


def problem() -> tuple[Any, Any]:
    data = lt.data.make_longtail(n=200, d=50, L=30, n_test=10, random_state=1)
    return data.train.X, data.train.Y


@pytest.mark.parametrize("rule", RULES)
def test_members_are_fitted_copies_and_combined(rule: str, tmp_path: Any) -> None:
    X, Y = problem()
    seeds = [lt.XRLinear(tree=lt.tree.LabelTree(leaf=5), random_state=seed) for seed in (0, 1)]
    model = lt.Ensemble(models=[*seeds, lt.baselines.Popularity()], rule=rule, candidates=10).fit(
        X, Y
    )
    assert not hasattr(seeds[0], "layers_"), "the given models stay unfitted"
    assert len(model.members_) == 3
    expected = combine([m.predict_topk(X, k=10) for m in model.members_], 5, rule)
    assert model.predict_topk(X, k=5) == expected
    wide = combine([m.predict_topk(X, k=12) for m in model.members_], 12, rule)
    assert model.predict_topk(X, k=12) == wide, "k above candidates asks members for k"
    model.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    assert again.predict_topk(X, k=5) == expected
    assert repr(again) == repr(model)
    assert again.fit(X, Y).predict_topk(X, k=5) == expected


def test_of_fitted_members() -> None:
    X, Y = problem()
    members = [lt.OneVsAll().fit(X, Y), lt.baselines.NearestNeighbors().fit(X, Y)]
    model = lt.Ensemble.of(members, rule="rank")
    assert model.members_ == members
    expected = lt.Ensemble(
        models=[lt.OneVsAll(), lt.baselines.NearestNeighbors()], rule="rank"
    ).fit(X, Y)
    assert model.predict_topk(X) == expected.predict_topk(X)
    with pytest.raises(ValueError, match="members is empty"):
        lt.Ensemble.of([])
    with pytest.raises(ValueError, match="share features and labels"):
        lt.Ensemble.of([members[0], lt.OneVsAll().fit(X[:, :9], Y)])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"models": []}, "models is empty"),
        ({"rule": "vote"}, "rule must be one of"),
        ({"candidates": 0}, "candidates must be at least 1"),
    ],
)
def test_bad_parameters(params: dict[str, Any], message: str) -> None:
    X, Y = problem()
    with pytest.raises(ValueError, match=message):
        lt.Ensemble(**{"models": [lt.baselines.Popularity()], **params}).fit(X, Y)


def test_damaged_states_are_refused() -> None:
    X, Y = problem()
    state = lt.Ensemble(models=[lt.baselines.Popularity(), lt.OneVsAll()]).fit(X, Y)._get_state()
    good = dict(state.parts)
    for parts, message in [
        ({}, "needs its members"),
        ({"member1": good["member0"]}, "numbered from 0"),
        ({"member0": lt.tree.LabelTree().fit(X, Y)._get_state()}, "other features or labels"),
        (
            {"member0": lt.baselines.Popularity().fit(X, Y[:, :5])._get_state()},
            "other features or labels",
        ),
    ]:
        state.parts.clear()
        state.parts.update(parts)
        with pytest.raises(ModelFormatError, match=message):
            from_state(state)


def test_labels_come_and_go_in_every_member() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((60, 8), dtype=np.float32)
    Y = (rng.random((60, 6)) < 0.3).astype(np.float32)
    pair = lt.Ensemble(models=[lt.OneVsAll(), lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[2]))])
    pair.fit(X, Y[:, :4])
    before = pair.members_[1].tree_.level_sizes_
    with pytest.raises(ValueError, match="negatives"):
        pair.add_labels(X, Y[:, 4:])
    assert pair.members_[1].tree_.level_sizes_ == before and pair.n_labels_ == 4
    assert pair.add_labels(X, Y[:, 4:], Y_old=Y[:, :4]).n_labels_ == 6
    assert pair.predict_topk(X, k=6).n_labels == 6
    assert pair.remove_labels([0]).n_labels_ == 5
    mixed = lt.Ensemble(models=[lt.OneVsAll(), lt.baselines.Popularity()]).fit(X, Y)
    assert not hasattr(mixed, "add_labels")
