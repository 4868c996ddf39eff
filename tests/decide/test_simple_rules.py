"""TopKRule, WeightedTopK and Threshold against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from decide_cases import WORKED, as_binary, f1

import longtail as lt
from longtail import TopK
from longtail.decide import Threshold, TopKRule, WeightedTopK


def test_top_k() -> None:
    assert TopKRule(k=2).select(WORKED) == TopK.from_scores(WORKED, 2)
    some = TopKRule(k=2, min_probability=0.75).select(WORKED)
    assert (some.indices >= 0).sum(axis=1).tolist() == [2, 1, 0]


def test_weights_from_the_table() -> None:
    prior = WORKED.astype(np.float32).mean(axis=0, dtype=np.float64)
    cases = {
        "macro_recall": WORKED / prior,
        "macro_balanced_accuracy": WORKED / prior - (1 - WORKED) / (1 - prior),
        "power_law": WORKED * prior**-0.25,
        "log": WORKED * -np.log(prior),
    }
    for weighting, gains in cases.items():
        rule = WeightedTopK(weighting, k=2, beta=0.25)
        chosen = rule.select(WORKED)
        np.testing.assert_array_equal(chosen.indices, TopK.from_scores(gains, 2).indices)
        np.testing.assert_allclose(
            chosen.scores, -np.sort(-gains, axis=1)[:, :2], rtol=1e-5, atol=1e-6
        )
        again = WeightedTopK(weighting, k=2, beta=0.25, prior=prior).select(WORKED)
        np.testing.assert_array_equal(again.indices, chosen.indices)
    plain, given = (WeightedTopK("power_law", k=2, **beta) for beta in ({}, {"beta": 0.5}))
    assert plain.select(WORKED) == given.select(WORKED)
    p = np.array([0.5, 0.9, 0.1])
    psp = WeightedTopK("psp", k=1, propensity=p).select(WORKED)
    assert psp == TopK.from_scores(WORKED / p, 1)
    fitted = lt.JainPropensity().fit([[0, 1], [0], [2, 0]])
    psp = WeightedTopK("psp", k=1, propensity=fitted).select(WORKED)
    np.testing.assert_array_equal(
        psp.indices, TopK.from_scores(WORKED * fitted.inverse_, 1).indices
    )


def test_weighted_sparse_answers_like_dense() -> None:
    """Balanced accuracy punishes false positives: absent labels may be cheaper."""
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((60, 20)) < 0.2, rng.random((60, 20)) * 0.3, 0)
    prior = dense.mean(axis=0)
    for weighting in ("macro_balanced_accuracy", "macro_recall"):
        rule = WeightedTopK(weighting, k=4, prior=prior)
        one, two = rule.select(dense), rule.select(sp.csr_matrix(dense))
        assert one == two and (two.indices >= 0).all()
    few = WeightedTopK("macro_balanced_accuracy", k=4, prior=prior, budget="at_most")
    gains = dense / prior - (1 - dense) / (1 - prior)
    chosen = as_binary(few.select(dense), 20)
    assert (chosen.sum(axis=1) == np.minimum((gains > 0).sum(axis=1), 4)).all()


def test_labels_without_a_prior_gain_nothing() -> None:
    rule = WeightedTopK("macro_recall", k=1, prior=[0.0, 0.5])
    with np.errstate(all="raise"):
        assert rule.select([[0.9, 0.1]]).indices.tolist() == [[1]]
    rule = WeightedTopK("macro_balanced_accuracy", k=1, prior=[1.0, 0.5])
    assert np.isfinite(rule.select([[0.9, 0.1]]).scores).all()


def thresholds_by_hand(eta, Y, value):
    """The best value over every cut between scores, one column at a time."""
    cuts = np.unique(eta)
    cuts = np.concatenate([[-1], (cuts[1:] + cuts[:-1]) / 2, [cuts[0] / 2, 2]])
    return max(value(eta > cut, Y) for cut in cuts)


def column_f1(named, y):
    return float(f1((named * y).sum(), (named * (1 - y)).sum(), ((1 - named) * y).sum(), 0))


def test_thresholds_are_the_best_cuts() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        eta = np.round(rng.random((25, 4)), 1).astype(np.float32)  # with ties
        Y = (rng.random((25, 4)) < eta * 0.7).astype(np.float32)
        rule = Threshold("macro_f1").fit(eta, Y)
        best = [thresholds_by_hand(eta[:, j], Y[:, j], column_f1) for j in range(4)]
        assert rule.utility_ == pytest.approx(np.mean(best))
        named = rule.select(eta).to_csr(binary=True).toarray()
        again = [column_f1(named[:, j], Y[:, j]) for j in range(4)]
        assert np.mean(again) == pytest.approx(rule.utility_)

        shared = Threshold("macro_f1", per="global").fit(eta, Y)
        macro = lambda named, y: np.mean([column_f1(named[:, j], y[:, j]) for j in range(4)])  # noqa: E731
        assert shared.utility_ == pytest.approx(thresholds_by_hand(eta, Y, macro))
        micro = Threshold("micro_f1", per="global").fit(eta, Y)
        assert micro.utility_ == pytest.approx(thresholds_by_hand(eta, Y, column_f1))


@pytest.mark.parametrize("seed", range(12))
def test_micro_f_with_a_threshold_a_label(seed: int) -> None:
    rng = np.random.default_rng(seed)
    eta = rng.random((5, 2)).astype(np.float32)
    Y = (rng.random((5, 2)) < 0.5).astype(np.float32)
    best = 0.0
    cuts = [np.concatenate([[-1], np.sort(eta[:, j]), [2]]) for j in range(2)]
    for a in cuts[0]:
        for b in cuts[1]:
            best = max(best, column_f1(eta >= [[a, b]], Y))
    assert Threshold("micro_f1").fit(eta, Y).utility_ == pytest.approx(best)


def test_how_many_and_abstention() -> None:
    rng = np.random.default_rng(3)
    eta = rng.random((400, 10)).astype(np.float32)
    Y = (rng.random(eta.shape) < eta).astype(np.float32)
    sure = Threshold(target_precision=0.95).fit(eta, Y)
    named = sure.select(eta).to_csr(binary=True).toarray()
    assert sure.utility_ == pytest.approx((named * Y).sum() / named.sum())
    assert sure.utility_ >= 0.95 - 1e-9 and 0 < sure.answered_ < 1
    assert sure.answered_ == pytest.approx((named.sum(axis=1) > 0).mean())
    assert sure.labels_per_row_ == pytest.approx(named.sum(axis=1).mean())
    exactly = Threshold(target_precision=0.8).fit(
        np.arange(9, 4, -1)[:, None] / 10, [[0]] * 4 + [[]]
    )
    assert exactly.labels_per_row_ == 1  # four of five are right
    looser = Threshold(target_precision=0.8).fit(eta, Y)
    assert looser.labels_per_row_ > sure.labels_per_row_
    sure.set_params(at_least=1, k=3)
    counts = (sure.select(eta).indices >= 0).sum(axis=1)
    assert counts.min() == 1 and counts.max() <= 3
    with pytest.warns(UserWarning, match=r"\b1\b"):
        never = Threshold(target_precision=1.0).fit(eta, np.zeros_like(Y))
    assert (never.select(eta).indices == -1).all()


def test_labels_above_their_thresholds_come_by_probability() -> None:
    rule = Threshold(k=2).fit(np.array([[0.9, 0.3], [0.2, 0.1]]), [[0, 1], []])
    rule.thresholds_ = np.array([0.85, 0.1])  # the second label is farther above its own
    top = rule.select([[0.9, 0.8]])
    assert top.indices.tolist() == [[0, 1]] and top.scores[0, 0] == np.float32(0.9)
    rule.set_params(k=None)  # then as many slots as the longest answer, at least one
    for eta, width in (([[0.9, 0.8], [0.1, 0.0]], 2), ([[0.9, 0.0]], 1), ([[0.0, 0.0]], 1)):
        assert rule.select(eta).k == width


def test_rare_labels_share_a_threshold_and_saving(tmp_path) -> None:
    eta = np.array([[0.9, 0.6], [0.8, 0.3], [0.1, 0.2]])
    rule = Threshold(min_positives=2).fit(eta, [[0, 1], [0], []])
    assert rule.thresholds_[1] == rule.global_threshold_
    rule.save(tmp_path / "rule")
    again = lt.load(tmp_path / "rule")
    assert again.select(eta) == rule.select(eta)
    unseen = Threshold().fit(eta, np.array([[1, 0], [1, 0], [0, 0]]))
    assert unseen.thresholds_[1] == unseen.global_threshold_


def test_sparse_candidates_miss_positives() -> None:
    """A true label that is no candidate still counts as a miss."""
    eta = sp.csr_matrix(np.array([[0.9, 0.0], [0.0, 0.4]], np.float32))
    rule = Threshold().fit(eta, np.array([[1, 0], [1, 1]]))
    assert rule.utility_ == pytest.approx((2 / 3 + 1) / 2)
