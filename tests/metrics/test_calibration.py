"""Calibration error against its definition written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from longtail import TopK, evaluate, metrics


def written_out(p: np.ndarray, hits: np.ndarray, n_bins: int) -> float:
    order = np.argsort(p, kind="stable")
    edges = np.linspace(0, len(p), n_bins + 1).round().astype(int)
    total = 0.0
    for a, b in itertools.pairwise(edges):
        part = order[a:b]
        total += len(part) / len(p) * abs(p[part].mean() - hits[part].mean())
    return total


def make(n: int = 500, n_labels: int = 20, k: int = 4) -> tuple[np.ndarray, TopK]:
    rng = np.random.default_rng(0)
    scores = rng.random((n, n_labels)).astype(np.float32)
    Y = (rng.random((n, n_labels)) < scores**2).astype(np.float32)
    return Y, TopK.from_scores(scores, k)


def test_error_is_its_definition() -> None:
    Y, top = make()
    hits = np.take_along_axis(Y, top.indices.astype(int), axis=1)
    for k, n_bins in ((1, 15), (4, 15), (4, 7)):
        expected = written_out(top.scores[:, :k].ravel().astype(float), hits[:, :k].ravel(), n_bins)
        found = metrics.expected_calibration_error(Y, top, k, n_bins=n_bins)
        assert found == pytest.approx(expected)
    rare = np.arange(20) < 5
    chosen = rare[top.indices].ravel()
    expected = written_out(top.scores.ravel()[chosen].astype(float), hits.ravel()[chosen], 15)
    assert metrics.expected_calibration_error(Y, top, 4, labels=rare) == pytest.approx(expected)


def test_five_answers_and_fifteen_bins_unless_told_otherwise() -> None:
    Y, top = make(k=8)
    error = metrics.expected_calibration_error
    assert error(Y, top) == error(Y, top, 5, n_bins=15) != error(Y, top, 6, n_bins=15)
    assert metrics.reliability(Y, top).error == error(Y, top)


def test_right_probabilities_have_a_small_error_and_wrong_ones_do_not() -> None:
    Y, top = make(n=20_000)
    assert metrics.expected_calibration_error(Y, top, 4) > 0.08
    squared = TopK(top.indices, top.scores**2, 20)
    assert metrics.expected_calibration_error(Y, squared, 4) < 0.02


def test_edges() -> None:
    Y, top = make(n=3, k=2)
    assert len(metrics.reliability(Y, top, 2, n_bins=50).count) == 6
    empty = TopK(np.full((3, 2), -1), np.full((3, 2), -np.inf), 20)
    assert metrics.expected_calibration_error(Y, empty, 2) == 0
    with pytest.raises(ValueError, match="top"):
        metrics.reliability(Y, TopK(top.indices, top.scores + 1, 20), 2)
    with pytest.raises(ValueError, match="20"):
        metrics.reliability(Y, top, 2, labels=np.arange(20))


def test_the_report_shows_it() -> None:
    Y, top = make()
    report = evaluate(Y, top, train_Y=Y, k=(1, 4), n_resamples=0, probabilities=True)
    found = report.calibration
    assert found is not None
    assert found.error == metrics.expected_calibration_error(Y, top, 4)
    assert sum(group.n_pairs for group in found.groups) == found.n_pairs == 2000
    assert "expected calibration error" in str(report)
    page = report.to_html()
    assert 'aria-label="Reliability: ' in page and "Probabilities, head to tail" in page
    assert page.count("answers given") == 15
    assert report.to_dict()["calibration"]["error"] == found.error
    plain = evaluate(Y, top, train_Y=Y, k=(1, 4), n_resamples=0)
    assert plain.calibration is None and "Reliability" not in plain.to_html()
    with pytest.raises(ValueError, match="top"):
        evaluate(Y, TopK(top.indices, top.scores - 1, 20), k=4, probabilities=True)
