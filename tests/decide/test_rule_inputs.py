"""Every rule: what it accepts, what it refuses, and odd shapes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import longtail as lt
from longtail import BlockCoordinateAscent, FrankWolfe, TopK
from longtail.decide import OnlineRule, Threshold, TopKRule, WeightedTopK
from longtail.decide.rule import CountingRule, LearningRule, Rule

ETA = np.array([[0.9, 0.2, 0.4], [0.1, 0.8, 0.7], [0.5, 0.5, 0.5]])
SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 6))
Y = np.array([[1, 0, 0], [0, 1, 1], [1, 0, 0]])


def rules(k: int = 2) -> list:
    return [
        TopKRule(k=k),
        WeightedTopK("macro_recall", k=k, prior=[0.3, 0.3, 0.3]),
        BlockCoordinateAscent("macro_f1", k=k, random_state=0),
        BlockCoordinateAscent("coverage", k=k, budget="at_most", random_state=0),
        FrankWolfe("macro_f1", k=k, random_state=0).fit(ETA, Y),
        Threshold("macro_f1", k=k).fit(ETA, Y),
        OnlineRule("macro_f1", k=k),
    ]


each_rule = pytest.mark.parametrize("rule", rules(), ids=lambda r: type(r).__name__)


@each_rule
def test_dense_sparse_and_topk(rule) -> None:
    forms = [
        ETA,
        ETA.tolist(),
        sp.csr_matrix(ETA),
        sp.coo_matrix(ETA),
        np.asfortranarray(ETA),
        TopK.from_scores(ETA, 3),
    ]
    answers = []
    for form in forms:
        if isinstance(rule, OnlineRule):
            rule.reset(3)
        answers.append(rule.select(form))
    assert all(answer == answers[0] for answer in answers)
    assert isinstance(answers[0], TopK) and answers[0].n_labels == 3
    TopK(answers[0].indices, answers[0].scores, n_labels=3)  # canonical: sorted, padded, unique


@each_rule
def test_filters(rule) -> None:
    for kwargs in (
        {"exclude": [0]},
        {"include": [1, 2]},
        {"include": np.array([False, True, True])},
    ):
        chosen = rule.select(sp.csr_matrix(ETA), **kwargs)
        assert 0 not in chosen.indices
    assert (rule.select(ETA, exclude=[0, 1, 2]).indices == -1).all()
    for bad in ([3], [-1], np.array([True])):
        with pytest.raises(ValueError):
            rule.select(ETA, exclude=bad)
    with pytest.raises(TypeError):
        rule.select(ETA, include=[0.5])


@pytest.mark.parametrize("make", [BlockCoordinateAscent, FrankWolfe])
def test_the_same_seed_by_default(make) -> None:
    assert make("macro_f1").random_state == 0, "as everywhere in this library"


@each_rule
def test_empty_rows_one_row_no_rows(rule) -> None:
    eta = sp.csr_matrix(np.array([[0, 0, 0], [0.5, 0, 0]], np.float32))
    chosen = rule.select(eta)
    assert len(chosen) == 2 and chosen.indices[1].max() >= -1
    assert len(rule.select(ETA[:1])) == 1
    assert len(rule.select(np.zeros((0, 3)))) == 0
    padded = TopK([[1, -1], [-1, -1]], [[0.5, -np.inf], [-np.inf, -np.inf]], n_labels=3)
    assert len(rule.select(padded)) == 2


@each_rule
def test_refusals(rule) -> None:
    for bad, message in [
        (ETA * np.nan, "NaN"),
        (ETA + 0.5, "1.4"),
        (ETA - 0.5, "-0.4"),
        (ETA.ravel(), "1"),
        (TopK([[0]], [[3.0]], n_labels=3), "3"),
    ]:
        with pytest.raises(ValueError, match=message):
            rule.select(bad)
    with pytest.raises(TypeError):
        rule.select([["a", "b", "c"]])


@pytest.mark.parametrize("k", [1, 3, 10])
def test_k_up_to_and_beyond_the_labels(k: int) -> None:
    for rule in rules(k):
        chosen = rule.select(ETA)
        counts = (chosen.indices >= 0).sum(axis=1)
        assert chosen.k == k and (counts <= 3).all()
        if not isinstance(rule, Threshold) and getattr(rule, "budget", "exactly") == "exactly":
            assert (counts == min(k, 3)).all()
    for bad, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)):
        for rule in rules():
            with pytest.raises(error):
                rule.set_params(k=bad).select(ETA)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BlockCoordinateAscent("macro_f2").select(ETA), "'macro_f2'"),
        (lambda: BlockCoordinateAscent("micro_f1").select(ETA), "FrankWolfe"),
        (lambda: BlockCoordinateAscent(budget="about").select(ETA), "budget"),
        (lambda: BlockCoordinateAscent(init="best").select(ETA), "init"),
        (lambda: BlockCoordinateAscent(tol=-1).select(ETA), "tol"),
        (lambda: BlockCoordinateAscent(precision_weight=2).select(ETA), "precision_weight"),
        (lambda: BlockCoordinateAscent(k=None).select(ETA), "at_most"),
        (lambda: BlockCoordinateAscent(init=TopKRule(k=1).select(ETA[:2])).select(ETA), "2 rows"),
        (lambda: FrankWolfe("coverage").fit(ETA, Y), "BlockCoordinateAscent"),
        (lambda: FrankWolfe().fit(ETA, Y[:2]), "rows"),
        (lambda: FrankWolfe().select(ETA), "FrankWolfe"),
        (lambda: FrankWolfe(sampling="x").fit(ETA, Y), "sampling"),
        (lambda: FrankWolfe().fit(np.zeros((0, 3)), np.zeros((0, 3))), r"\(0, 3\)"),
        (lambda: FrankWolfe().fit(np.zeros((2, 0)), np.zeros((2, 0))), r"\(2, 0\)"),
        (lambda: FrankWolfe("precision", k=None).fit(ETA, Y), r"\bk\b"),
        (lambda: FrankWolfe(k=None, precision_weight=0.5).fit(ETA, Y), r"\bk\b"),
        (lambda: FrankWolfe(k=1).fit(ETA, Y).select(ETA[:, :2]), "labels"),
        (lambda: WeightedTopK("psp").select(ETA), "propensity"),
        (lambda: WeightedTopK("psp", propensity=[0.5, 0, 1]).select(ETA), r"\(0, 1\]"),
        (lambda: WeightedTopK("psp", propensity=[0.5, 2, 1]).select(ETA), r"\(0, 1\]"),
        (lambda: WeightedTopK("tail").select(ETA), "'tail'"),
        (lambda: WeightedTopK(prior=[3, 2, 1]).select(ETA), "priors"),
        (lambda: WeightedTopK(prior=[0.5]).select(ETA), "1.*3"),
        (lambda: Threshold("f1").fit(ETA, Y), "metric"),
        (lambda: Threshold().select(ETA), "Threshold"),
        (lambda: OnlineRule("coverage").select(ETA), "'coverage'"),
        (lambda: OnlineRule(n_labels=2).select(ETA), "labels"),
    ],
)
def test_parameters_at_fault(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_metric_is_a_name_or_a_function() -> None:
    with pytest.raises(TypeError, match=r"metric.*\b3\b"):
        BlockCoordinateAscent(3).select(ETA)


def test_precision_alone_is_won_by_the_most_probable_labels() -> None:
    ascent = BlockCoordinateAscent("precision", k=1)
    for rule in (ascent, OnlineRule("precision", k=1)):
        np.testing.assert_array_equal(rule.select(ETA[:2]).indices, [[0], [1]])
    assert ascent.utility_ == pytest.approx(np.mean([0.9, 0.8]))


def test_parameters_follow_the_protocol(tmp_path) -> None:
    for rule in rules():
        twin = type(rule)(**rule.get_params())
        assert repr(twin) == repr(rule)
    # A rule that learns nothing is saved as its parameters, before it was ever asked.
    ready = (
        TopKRule(k=1),
        WeightedTopK("power_law", k=1, prior=np.full(ETA.shape[1], 0.2)),
        BlockCoordinateAscent(k=1, random_state=0),
    )
    for i, rule in enumerate(ready):
        rule.save(tmp_path / str(i))
        assert lt.load(tmp_path / str(i)).select(ETA) == rule.select(ETA)
    for rule in (FrankWolfe(), Threshold(), OnlineRule()):
        with pytest.raises(ValueError, match=type(rule).__name__):
            rule.save(tmp_path / "unfitted")


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.float32, SHAPES, elements=st.floats(0, 1, width=32)),
    st.integers(1, 7),
    st.sampled_from(["macro_f1", "macro_precision", "macro_g_mean", "coverage"]),
    st.sampled_from(["exactly", "at_most"]),
)
def test_any_probabilities(eta, k, metric, budget) -> None:
    rule = BlockCoordinateAscent(metric, k=k, budget=budget, random_state=0)
    chosen = rule.select(eta)
    TopK(chosen.indices, chosen.scores, n_labels=eta.shape[1])
    assert np.isfinite(rule.utilities_).all() and (np.diff(rule.utilities_[6:]) >= -1e-12).all()
    named = chosen.indices >= 0
    rows = np.repeat(np.arange(len(eta)), named.sum(axis=1))
    np.testing.assert_array_equal(chosen.scores[named], eta[rows, chosen.indices[named]])
    if budget == "exactly":
        assert (named.sum(axis=1) == min(k, eta.shape[1])).all()
    assert lt.metrics.precision_at_k(np.ones_like(eta), chosen, k=1) <= 1


def test_rules_are_told_apart_by_what_they_can_do() -> None:
    learning = {lt.FrankWolfe, lt.decide.Threshold}
    for kind in (lt.decide.TopKRule, lt.decide.WeightedTopK, lt.BlockCoordinateAscent, *learning):
        assert isinstance(kind(), Rule) and not isinstance(kind(), CountingRule)
        assert isinstance(kind(), LearningRule) == (kind in learning)
    assert isinstance(lt.decide.OnlineRule(), CountingRule)
    assert not isinstance(lt.OneVsAll(), Rule) and not isinstance(None, Rule)
