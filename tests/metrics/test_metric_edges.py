"""Input that breaks evaluators: nothing at all, more slots than labels, what must be refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail import TopK, metrics

PLAIN = [
    name
    for name in metrics.__all__
    if name.endswith("_at_k") and not name.startswith("ps_") and name != "confusion_at_k"
]
PROPENSITY_SCORED = [name for name in metrics.__all__ if name.startswith("ps_")]


def call(name, Y, top, k, **options):
    args = [np.ones(Y.shape[1])] if name in PROPENSITY_SCORED else []
    return getattr(metrics, name)(Y, top, *args, k=k, **options)


@pytest.mark.parametrize("name", PLAIN + PROPENSITY_SCORED)
def test_nothing_to_evaluate_is_zero(name):
    no_rows = call(name, sp.csr_matrix((0, 3)), TopK(np.empty((0, 2), int), np.empty((0, 2)), 3), 2)
    assert no_rows == 0
    no_labels = call(name, np.zeros((2, 0)), TopK([[-1], [-1]], [[-np.inf]] * 2, 0), 1)
    assert no_labels == 0
    no_answers = call(name, np.eye(3), TopK([[-1]] * 3, [[-np.inf]] * 3, 3), 1)
    # Someone who answers nothing is wrong only about the positives, and right about the rest.
    rest = {"hamming_loss_at_k": 1 / 3, "micro_balanced_accuracy_at_k": 0.5}
    rest["macro_balanced_accuracy_at_k"] = 0.5
    assert no_answers == pytest.approx(rest.get(name, 0))


@pytest.mark.parametrize("name", PLAIN + PROPENSITY_SCORED)
def test_k_beyond_the_labels_is_padding(name):
    Y, scores = np.array([[1, 0, 1], [0, 0, 0]]), np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]])
    padded = TopK(
        [[1, 2, 0, -1, -1], [0, 1, 2, -1, -1]], np.array([[3, 2, 1, -np.inf, -np.inf]] * 2), 3
    )
    values = [call(name, Y, top, 5) for top in (scores, padded, TopK.from_scores(scores, 3))]
    assert values[0] == values[1] == values[2]
    assert np.isfinite(values[0])


def test_a_ranking_that_is_cut_off_is_refused_beyond_its_slots():
    top = TopK([[0, 1]], [[0.9, 0.8]], n_labels=9)
    with pytest.raises(ValueError, match=r"\b5\b.*\b2\b"):
        metrics.precision_at_k([[0]], top, k=5)
    with pytest.raises(ValueError, match="k=3"):
        metrics.precision_at_k(None, metrics.match([[0]], top), k=3)


def test_a_ranking_that_ends_by_itself_is_not():
    top = TopK([[0, -1]], [[0.9, -np.inf]], n_labels=9)
    assert metrics.precision_at_k([[0]], top, k=5) == 0.2
    sparse = sp.csr_matrix(([0.9], ([0], [0])), shape=(1, 9))
    assert metrics.precision_at_k(None, metrics.match([[0]], sparse), k=5) == 0.2


def test_stored_entries_of_sparse_scores_are_the_candidates():
    scores = sp.csr_matrix(np.array([[0, -2.0, -1.0]]))
    assert metrics.precision_at_k([[0]], scores, k=1) == 0
    assert metrics.precision_at_k([[2]], scores, k=1) == 1


def test_ties_go_to_the_smaller_label():
    assert metrics.precision_at_k([[1]], np.ones((1, 4)), k=2) == 0.5
    assert metrics.precision_at_k([[2]], np.ones((1, 4)), k=2) == 0


def test_label_lists_take_their_width_from_the_ranking():
    top = TopK([[5], [0]], [[1.0], [1.0]])
    assert metrics.coverage_at_k([[0], [0]], top, k=1) == pytest.approx(1 / 6)
    with pytest.raises(ValueError, match=r"\b5\b.*\b2\b"):
        metrics.coverage_at_k(np.eye(2), top, k=1)


@pytest.mark.parametrize(
    ("Y", "top", "message"),
    [
        (np.eye(3), TopK([[0]], [[1.0]], 3), r"\b3\b.*\b1\b"),
        (np.eye(3), np.eye(4), r"\b3\b.*\b4\b"),
        (np.full((1, 2), 2.0), np.eye(2)[:1], r"\b2\b"),
        (np.array([[np.nan, 1]]), np.eye(2)[:1], "NaN"),
        (np.eye(2), np.array([[np.nan, 1], [0, 1]]), "NaN"),
        (np.eye(2), np.ones(2), "top"),
    ],
)
def test_bad_input_is_refused(Y, top, message):
    with pytest.raises(ValueError, match=message):
        metrics.precision_at_k(Y, top, k=1)


@pytest.mark.parametrize("k", [0, -1])
def test_bad_k_is_refused(k):
    with pytest.raises(ValueError, match=r"\bk\b"):
        metrics.precision_at_k(np.eye(2), np.eye(2), k=k)
    with pytest.raises(TypeError, match=r"\b1\.5\b"):
        metrics.precision_at_k(np.eye(2), np.eye(2), k=1.5)


def test_rankings_that_end_before_their_slots_do_are_deep_enough():
    top = TopK([[0, 1, -1], [1, 0, -1]], [[2, 1, -np.inf]] * 2, n_labels=9)
    assert metrics.precision_at_k([[0], [1]], top, k=4) == 0.25
    with pytest.raises(ValueError, match="k=3"):
        metrics.precision_at_k([[0], [1]], top.head(2), k=3)


def test_an_answer_without_labels_fits_any_truth():
    assert metrics.precision_at_k(np.ones((1, 1)), TopK([[-1]], [[-np.inf]]), k=1) == 0


def test_empty_slots_are_no_ties():
    top = TopK([[0, 1, -1, -1]], [[2, 1, -np.inf, -np.inf]], n_labels=9)
    assert metrics.ndcg_at_k([[0]], top, k=3, compat="sklearn") == 1


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match=r"matlab.*napkinxc, pecos"):
        metrics.precision_at_k(np.eye(2), np.eye(2), k=1, compat="matlab")
    with pytest.raises(ValueError, match="'some'"):
        metrics.macro_f1_at_k(np.eye(2), np.eye(2), k=1, labels="some")
    with pytest.raises(TypeError):
        metrics.precision_at_k(np.eye(2), np.eye(2), k=1, average="macro")


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([1.0, 2.0], "1/q"),
        ([1.0, 0.0], r"\(0, 1\]"),
        ([1.0, np.nan], r"\(0, 1\]"),
        ([1.0], r"\b2\b.*\(1,\)"),
        (SimpleNamespace(inverse_=[1.0, np.inf]), "finite"),
        (SimpleNamespace(inverse_=[1.0, -1.0]), "not negative"),
        (SimpleNamespace(fit=None), "SimpleNamespace"),
    ],
)
def test_bad_propensities_are_refused(p, message):
    with pytest.raises(ValueError, match=message):
        metrics.ps_precision_at_k(np.eye(2), np.eye(2), p, k=1)


def test_a_label_may_weigh_nothing():
    p = SimpleNamespace(inverse_=[0.0, 3.0])
    assert metrics.ps_precision_at_k(np.eye(2), np.eye(2), p, k=1, normalize=False) == 1.5


def test_matches_belong_to_their_truth():
    Y = sp.identity(2, format="csr")
    m = metrics.match(Y, np.eye(2))
    assert metrics.precision_at_k(Y, m, k=1) == metrics.precision_at_k(None, m, k=1) == 1
    with pytest.raises(ValueError, match="Y_true"):
        metrics.precision_at_k(Y.copy(), m, k=1)


def test_metrics_are_reached_from_the_package_and_keep_their_signature():
    import inspect

    assert lt.metrics.precision_at_k is metrics.precision_at_k
    parameters = inspect.signature(metrics.ps_precision_at_k).parameters
    assert list(parameters) == ["Y_true", "top", "p", "k", "normalize", "compat"]
    assert all(getattr(metrics, name).__doc__ for name in metrics.__all__)


@pytest.mark.parametrize("name", [name for name in metrics.__all__ if name.endswith("_at_k")])
def test_five_answers_count_unless_told_otherwise(name: str) -> None:
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 30)) < 0.15).astype(np.float32)
    top = TopK.from_scores(rng.random((40, 30)), 8)
    more = [rng.uniform(0.2, 1, 30)] if name.startswith("ps_") else []

    def value(**k: int) -> Any:
        found = getattr(metrics, name)(Y, top, *more, **k)
        return found.true_positives.tolist() if name == "confusion_at_k" else found

    assert value() == value(k=5) != value(k=6)
