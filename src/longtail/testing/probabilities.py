"""Calibrated probabilities keep their word on new rows, and the ranking as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail as lt
from longtail import TopK, metrics
from longtail.exceptions import ModelFormatError
from longtail.testing.problems import Problem, features, make_problem

Make = Callable[..., Any]


@pytest.fixture
def probable(make: Make) -> Make:
    """Return rankers that have probabilities; skip others."""
    if not hasattr(make(), "calibrate"):
        pytest.skip("this ranker has no probabilities")
    return make


@pytest.fixture(scope="module")
def large() -> Problem:
    return make_problem(n=1500, seed=7)


def of_networks(model: Any) -> bool:
    """Return whether these are networks of three epochs: far from converged, each fit has scores of
    another scale, and what cross-fitting learns from two fits is not true of a third.
    """
    return "Network" in repr(model)


@pytest.mark.parametrize("method", ["auto", "platt", "beta", "isotonic"])
def test_probabilities_keep_the_ranking(probable: Make, problem: Problem, method: str) -> None:
    model = probable().fit(problem.X[:60], problem.Y[:60])
    top = model.predict_topk(problem.X, k=4)
    assert model.calibrate(problem.X[60:], problem.Y[60:], method=method) is model
    proba = model.predict_proba_topk(problem.X, k=4)
    TopK(proba.indices, proba.scores, 12)
    answered = proba.indices >= 0
    assert ((proba.scores >= 0) & (proba.scores <= 1))[answered].all()
    assert model.predict_topk(problem.X, k=4) == top, "scores stay scores"
    # The same labels; another order only where probabilities are equal.
    assert (np.sort(proba.indices, axis=1) == np.sort(top.indices, axis=1)).all()
    mapped = model.calibrator_.transform(top.scores[top.indices >= 0])
    np.testing.assert_allclose(proba.scores[answered], mapped, atol=1e-6)


@features
def test_calibrated_on_some_right_on_others(probable: Make, large: Problem) -> None:
    fit, valid, test = slice(0, 500), slice(500, 1000), slice(1000, 1500)
    model = (
        probable().fit(large.X[fit], large.Y[fit]).calibrate(large.X[valid], large.Y[valid], k=3)
    )
    proba = model.predict_proba_topk(large.X[test], k=3)
    limit = 0.08 if of_networks(model) else 0.05
    assert metrics.expected_calibration_error(large.Y[test], proba, k=3) < limit
    sure = metrics.reliability(large.Y[test], proba, k=3, n_bins=1)
    assert sure.proba[0] == pytest.approx(sure.hit_rate[0], abs=0.03)


@features
def test_cross_fitting_needs_no_held_out_rows(probable: Make, large: Problem) -> None:
    model = probable().fit(large.X[:1000], large.Y[:1000])
    before = model.predict_topk(large.X)
    model.calibrate(large.X[:1000], large.Y[:1000], k=3, folds=3)
    assert model.predict_topk(large.X) == before
    proba = model.predict_proba_topk(large.X[1000:], k=3)
    if not of_networks(model):
        assert metrics.expected_calibration_error(large.Y[1000:], proba, k=3) < 0.06
    with pytest.raises(ValueError, match=r"folds.*\b11\b"):
        model.calibrate(large.X[:10], large.Y[:10], folds=11)


def test_filters_and_probabilities_go_together(probable: Make, problem: Problem) -> None:
    model = probable().fit(problem.X[:60], problem.Y[:60]).calibrate(problem.X[60:], problem.Y[60:])
    proba = model.predict_proba_topk(problem.X, k=3, include=[0, 5, 7, 8])
    assert np.isin(proba.indices, [0, 5, 7, 8]).all()
    only = model.predict_proba_topk(problem.X, k=1, include=[5])
    at = proba.indices == 5
    rows = at.any(axis=1)
    if not isinstance(model, lt.Ensemble):  # whose scores depend on the other candidates
        np.testing.assert_allclose(proba.scores[at], only.scores[rows, 0], atol=1e-6)


def test_calibration_is_saved_and_forgotten(
    probable: Make, problem: Problem, tmp_path: Path
) -> None:
    fitted = probable().fit(problem.X, problem.Y)
    bare = hasattr(fitted, "predict_proba_topk")
    model = fitted.calibrate(problem.X, problem.Y)
    expected = model.predict_proba_topk(problem.X)
    model.save(tmp_path / "m")
    found = lt.load(tmp_path / "m", verify=True)
    assert found.predict_proba_topk(problem.X) == expected
    assert found.calibration_ == model.calibration_
    found.fit(problem.X, problem.Y)
    assert found.calibrator_ is None
    assert hasattr(found, "predict_proba_topk") == bare
    text = (tmp_path / "m" / "manifest.json").read_text()
    method = model.calibration_["method"]
    (tmp_path / "m" / "manifest.json").write_text(text.replace(f'"{method}"', '"guess"'))
    with pytest.raises(ModelFormatError):
        lt.load(tmp_path / "m")


def test_same_seed_same_curve(probable: Make, problem: Problem) -> None:
    first, second = (
        probable().fit(problem.X, problem.Y).calibrate(problem.X, problem.Y, folds=3).calibration_
        for _ in range(2)
    )
    assert first == second
