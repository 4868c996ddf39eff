"""Every metric against its definition: the exact cases of the literature, and random input."""

from __future__ import annotations

import doctest
import pickle
import re
from types import SimpleNamespace

import metric_reference as ref
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import TopK, metrics

TRUTH = [[0, 2], [1, 3]]
SCORES = np.array([[0.9, 0.8, 0.7, 0.1], [0.1, 0.9, 0.2, 0.3]])
INVERSE = SimpleNamespace(inverse_=np.array([1.0, 2.0, 4.0, 10.0]))
ROW_WISE = ["precision", "recall", "f1", "dcg", "ndcg", "hit_rate", "hamming_loss"]


def test_exact_case_of_two_rows():
    assert metrics.precision_at_k(TRUTH, SCORES, k=1) == 1
    assert metrics.precision_at_k(TRUTH, SCORES, k=2) == 0.75
    psp = metrics.ps_precision_at_k
    assert psp(TRUTH, SCORES, INVERSE, k=1, normalize=False) == 1.5
    assert psp(TRUTH, SCORES, INVERSE, k=2, normalize=False) == 3.25
    assert psp(TRUTH, SCORES, INVERSE, k=1) == pytest.approx(1.5 / 7, abs=1e-15)
    assert psp(TRUTH, SCORES, INVERSE, k=2) == pytest.approx(3.25 / 4.25, abs=1e-15)
    assert metrics.ndcg_at_k(TRUTH[:1], SCORES[:1], k=3) == pytest.approx(0.9197208, abs=1e-7)
    assert metrics.ndcg_at_k([[], [1, 3]], SCORES, k=3) == 0.5  # the second row's is 1


def test_normalised_psp_is_not_the_mean_of_row_ratios():
    for k, row_ratios in ((1, 0.225), (2, 0.6)):
        rows = metrics.ps_precision_at_k.rows(TRUTH, SCORES, INVERSE, k=k)
        assert np.mean(rows.numerator / rows.denominator) == pytest.approx(row_ratios)
        assert metrics.ps_precision_at_k(TRUTH, SCORES, INVERSE, k=k) != pytest.approx(row_ratios)


def test_unnormalised_psp_exceeds_one():
    assert metrics.ps_precision_at_k([[3]], [[0, 0, 0, 1.0]], INVERSE, k=1, normalize=False) == 10


def test_coverage_and_macro_of_a_small_confusion():
    # label 0: tp 1, fp 1, fn 0; label 1: fn 1; label 2: no support, predicted once
    Y = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    top = TopK([[0], [0], [2]], [[1.0]] * 3, n_labels=3)
    assert metrics.coverage_at_k(Y, top, k=1) == pytest.approx(1 / 3)
    assert metrics.coverage_at_k(Y, top, k=1, labels="present") == 0.5
    assert metrics.macro_precision_at_k(Y, top, k=1) == pytest.approx(0.5 / 3)
    assert metrics.macro_recall_at_k(Y, top, k=1, labels="present") == 0.5
    assert metrics.macro_f1_at_k(Y, top, k=1) == pytest.approx(2 / 3 / 3)
    assert metrics.macro_g_mean_at_k(Y, top, k=1) == pytest.approx(0.5**0.5 / 3)
    assert metrics.macro_fowlkes_mallows_at_k(Y, top, k=1) == pytest.approx(0.5**0.5 / 3)
    assert metrics.macro_balanced_accuracy_at_k(Y, top, k=1) == pytest.approx(
        ((1 + 0.5) / 2 + (0 + 1) / 2 + (0 + 2 / 3) / 2) / 3
    )


@pytest.mark.parametrize("name", ROW_WISE)
@settings(deadline=None)
@given(case=ref.rankings_and_k())
def test_row_wise_metrics(name, case):
    Y, top, k = case
    metric = getattr(metrics, f"{name}_at_k")
    assert metric(Y, top, k) == pytest.approx(getattr(ref, name)(Y, top, k), abs=1e-12)


@pytest.mark.parametrize("kind", ["precision", "recall", "dcg", "ndcg"])
@settings(deadline=None)
@given(case=ref.rankings_and_k(), normalize=st.booleans(), seed=st.integers(0, 99))
def test_propensity_scored_metrics(kind, case, normalize, seed):
    Y, top, k = case
    q = 1 + 9 * np.random.default_rng(seed).random(Y.shape[1])
    metric = getattr(metrics, f"ps_{kind}_at_k")
    value = metric(Y, top, SimpleNamespace(inverse_=q), k, normalize=normalize)
    expected = ref.propensity_scored(Y, top, q, k, kind, normalize)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
    if normalize:
        assert value <= 1 + 1e-12


@pytest.mark.parametrize("name", ref.LABEL_MEASURES)
@settings(deadline=None)
@given(case=ref.rankings_and_k())
def test_macro_and_micro_metrics(name, case):
    Y, top, k = case
    macro, micro = (getattr(metrics, f"{kind}_{name}_at_k") for kind in ("macro", "micro"))
    for labels in ("all", "present"):
        expected = ref.macro(name, Y, top, k, labels)
        assert macro(Y, top, k, labels=labels) == pytest.approx(expected, abs=1e-12)
    assert micro(Y, top, k) == pytest.approx(ref.micro(name, Y, top, k), abs=1e-12)


@settings(deadline=None)
@given(ref.rankings_and_k())
def test_coverage_and_confusion_counts(case):
    Y, top, k = case
    assert metrics.coverage_at_k(Y, top, k) == pytest.approx(ref.coverage(Y, top, k))
    counts = metrics.confusion_at_k(Y, top, k)
    tp, predicted, positives = ref.counts(Y, top, k)
    np.testing.assert_allclose(counts.true_positives, tp)
    np.testing.assert_allclose(counts.false_positives, predicted - tp)
    np.testing.assert_allclose(counts.false_negatives, positives - tp)
    total = counts.true_positives + counts.false_positives + counts.false_negatives
    np.testing.assert_allclose(counts.true_negatives, len(Y) - total)


@settings(max_examples=30, deadline=None)
@given(ref.rankings_and_k())
def test_matches_give_the_same_as_fresh_input(case):
    Y, top, k = case
    m = metrics.match(Y, top)
    for name in [*ROW_WISE, *(f"macro_{measure}" for measure in ref.LABEL_MEASURES), "coverage"]:
        metric = getattr(metrics, f"{name}_at_k")
        assert metric(Y, m, k) == metric(Y, top, k)


def test_propensities_may_change_between_calls_on_the_same_matches():
    m = metrics.match(TRUTH, SCORES)
    p = np.array([1, 0.5, 0.25, 0.1])
    first = metrics.ps_precision_at_k(None, m, p, k=2)
    p[:] = 1
    assert metrics.ps_precision_at_k(None, m, p, k=2) == 0.75
    assert metrics.ps_precision_at_k(None, m, INVERSE, k=2) == first


def test_results_do_not_depend_on_threads_or_container():
    rng = np.random.default_rng(0)
    Y = sp.random(30_000, 500, density=0.01, format="csr", random_state=0, dtype=np.float32)
    scores = sp.random(30_000, 500, density=0.02, format="csr", random_state=1, dtype=np.float32)
    q = SimpleNamespace(inverse_=1 + rng.random(500))
    values = []
    for n_jobs, truth in ((1, Y), (2, Y.tocoo()), (5, sp.csr_array(Y)), (3, Y.astype(np.float64))):
        m = metrics.match(truth, scores, n_jobs=n_jobs)
        values.append(
            [
                metrics.ndcg_at_k(None, m, k=3),
                metrics.ps_ndcg_at_k(None, m, q, k=5),
                metrics.macro_f1_at_k(None, m, k=5),
            ]
        )
    assert values[0] == values[1] == values[2] == values[3]


@pytest.mark.parametrize("name", [name for name in metrics.__all__ if name.endswith("_at_k")])
def test_what_help_shows_is_true(name: str) -> None:
    """Docstrings are put together when the module is imported: their examples are run as shown."""
    metric = getattr(metrics, name)
    assert (metric.__name__, metric.__qualname__) == (name, name)
    (test,) = doctest.DocTestFinder(recurse=False).find(metric, name, globs={**vars(metrics)})
    test.globs["np"] = np
    assert len(test.examples) >= 1 and re.search(rf"\b{name}\(", test.docstring or "")
    assert doctest.DocTestRunner().run(test).failed == 0
    with pytest.raises(TypeError):
        metric(k=1, of="nothing")
    assert pickle.loads(pickle.dumps(metric)) is metric
