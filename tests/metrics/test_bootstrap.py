from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from longtail import TopK, metrics
from longtail._native import core

N, L = 300, 40
RNG = np.random.default_rng(7)
Y = (RNG.random((N, L)) < 0.08).astype(np.float32)
TOP = TopK.from_scores(RNG.random((N, L)) + Y, 5)
P = RNG.uniform(0.1, 1, L)


def test_counts_are_draws_with_replacement():
    counts = np.stack([core.resample_counts(100, 3, b) for b in range(500)]).astype(int)
    assert (counts.sum(axis=1) == 100).all()
    assert np.abs(counts.mean(axis=0) - 1).max() < 0.2
    assert (counts == 0).mean() == pytest.approx((1 - 1 / 100) ** 100, abs=0.01)
    assert counts.var(axis=0).mean() == pytest.approx(1 - 1 / 100, abs=0.05)
    correlation = np.corrcoef(counts)  # resamples are independent of each other
    assert np.abs(correlation[~np.eye(500, dtype=bool)]).max() < 0.6


@pytest.mark.parametrize(
    "metric",
    [
        partial(metrics.precision_at_k, k=1),
        partial(metrics.ndcg_at_k, k=3),
        partial(metrics.ps_precision_at_k, p=P, k=3),
        partial(metrics.ps_recall_at_k, p=P, k=3, normalize=False),
        partial(metrics.micro_f1_at_k, k=3),
        partial(metrics.macro_f1_at_k, k=3),
        partial(metrics.coverage_at_k, k=1, labels="present"),
        partial(metrics.micro_g_mean_at_k, k=2, compat="xcolumns"),
    ],
)
def test_resampled_values_are_the_metric_on_resampled_rows(metric):
    """The fast ways agree with evaluating drawn rows, the way a plain function takes."""

    def plainly(Y_true, top):
        return metric(Y_true, top)

    fast, slow = metrics.bootstrap_intervals(
        {"fast": metric, "slow": plainly}, Y, TOP, n_resamples=40
    ).values()
    assert fast.estimate == pytest.approx(slow.estimate, abs=1e-12)
    assert fast.std_error == pytest.approx(slow.std_error, rel=1e-9)
    if hasattr(metric.func, "rows"):
        assert (fast.low, fast.high) == pytest.approx((slow.low, slow.high), abs=1e-12)
    elif fast.high < 1:  # moved to be centred on the estimate, and not cut
        assert fast.high - fast.low == pytest.approx(slow.high - slow.low, abs=1e-9)
    assert fast.low <= fast.estimate <= fast.high


def test_interval_of_a_mean_matches_theory():
    found = metrics.bootstrap_interval(metrics.precision_at_k, Y, TOP, k=1, n_resamples=4000)
    hits = metrics.precision_at_k.rows(Y, TOP, k=1).numerator
    theory = hits.std() / np.sqrt(N)
    assert found.std_error == pytest.approx(theory, rel=0.05)
    assert found.high - found.low == pytest.approx(2 * 1.96 * theory, rel=0.1)


def test_same_seed_same_interval_for_any_number_of_threads():
    def run(**options):
        return metrics.bootstrap_interval(
            metrics.ps_ndcg_at_k, Y, TOP, P, k=3, n_resamples=50, **options
        )

    assert run(n_jobs=1) == run(n_jobs=4) == run(random_state=0)
    assert run(random_state=1) != run()


def test_label_wise_intervals_are_centred_and_within_bounds():
    labels = np.eye(60, dtype=np.float32)  # every label has one row: a resample loses 37 % of them
    found = metrics.bootstrap_interval(
        metrics.macro_recall_at_k, labels, labels, k=1, n_resamples=100
    )
    assert found.estimate == 1 and found.high == 1 and found.low < 1


def test_arguments_by_position_and_matches_are_accepted():
    m = metrics.match(Y, TOP)
    by_position = metrics.bootstrap_interval(
        metrics.ps_precision_at_k, None, m, P, 3, n_resamples=9
    )
    by_name = metrics.bootstrap_interval(metrics.ps_precision_at_k, Y, TOP, p=P, k=3, n_resamples=9)
    assert by_position == by_name


def test_scores_are_ranked_only_as_deep_as_needed():
    scores = RNG.random((N, L))
    deep = metrics.bootstrap_intervals(
        {"a": partial(metrics.recall_at_k, k=2), "b": partial(metrics.macro_recall_at_k, k=7)},
        Y,
        scores,
        n_resamples=5,
    )
    assert deep["b"].estimate == metrics.macro_recall_at_k(Y, scores, 7)


def test_nothing_to_resample():
    empty = TopK(np.empty((0, 1), int), np.empty((0, 1)), n_labels=L)
    found = metrics.bootstrap_interval(metrics.precision_at_k, Y[:0], empty, k=1, n_resamples=3)
    assert (found.estimate, found.low, found.high) == (0, 0, 0)
    single = metrics.bootstrap_interval(metrics.macro_f1_at_k, Y, TOP, k=1, n_resamples=1)
    assert single.std_error == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"confidence": 1.0}, ValueError, "confidence"),
        ({"n_resamples": 0}, ValueError, "n_resamples"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"k": 9}, ValueError, "k=9"),
        ({"n_samples": 3}, TypeError, "n_samples"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        metrics.bootstrap_interval(metrics.precision_at_k, Y, TOP, **options)
