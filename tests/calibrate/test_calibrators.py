"""Curves from scores to probabilities: they rise, they fit, and the best one is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.calibrate import Beta, Calibrator, Isotonic, Platt, choose, log_loss
from longtail.calibrate.choice import METHODS
from longtail.exceptions import ModelFormatError

KINDS = list(METHODS.values())


def drawn(curve: Any, n: int = 20_000, low: float = 0.0, high: float = 1.0) -> Any:
    rng = np.random.default_rng(0)
    scores = rng.uniform(low, high, n)
    return scores, (rng.random(n) < curve(scores)).astype(float)


def test_platt_finds_the_curve_it_was_drawn_from() -> None:
    scores, hits = drawn(lambda s: 1 / (1 + np.exp(-(2 * s - 1))), low=-3, high=3)
    found = Platt.fit(scores, hits)
    assert (found.slope, found.intercept) == pytest.approx((2, -1), abs=0.12)


def test_beta_finds_the_curve_it_was_drawn_from() -> None:
    scores, hits = drawn(lambda s: 1 / (1 + np.exp(-(0.5 * np.log(s) - 2 * np.log1p(-s) - 1))))
    found = Beta.fit(scores, hits)
    assert (found.a, found.b, found.c) == pytest.approx((0.5, 2, -1), abs=0.15)
    scores, hits = drawn(lambda s: s)
    np.testing.assert_allclose(
        Beta.fit(scores, hits).transform([0.1, 0.5, 0.8]), [0.1, 0.5, 0.8], atol=0.02
    )


def test_isotonic_is_that_of_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.isotonic")
    scores, hits = drawn(lambda s: np.where(s < 0.3, 0.1, 0.2 + 0.7 * s**3), n=3000)
    scores = scores.round(2)  # with ties
    found = Isotonic.fit(scores, hits)
    steps = sklearn.IsotonicRegression().fit(scores, hits).predict(scores)
    values, first = np.unique(steps, return_index=True)
    assert len(found.values) == len(values)
    np.testing.assert_allclose(found.values[1:-1], values[1:-1], atol=1e-6)
    knots = [scores[steps == value].mean() for value in values]
    np.testing.assert_allclose(found.knots, knots, atol=1e-9)
    assert len(first)


def test_isotonic_of_more_scores_than_it_keeps() -> None:
    scores, hits = drawn(lambda s: s**2, n=150_000)
    grid = np.linspace(0.05, 0.95, 10)
    np.testing.assert_allclose(Isotonic.fit(scores, hits).transform(grid), grid**2, atol=0.03)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.floats(width=32, allow_nan=False), st.floats(0, 1)), min_size=1, max_size=30
    )
)
def test_every_curve_rises_within_0_and_1(kind: type[Calibrator], pairs: Any) -> None:
    scores, hits = np.array(pairs).T
    curve = kind.fit(scores, hits)
    grid = np.sort(np.concatenate([scores, np.linspace(-3, 3, 50), [-np.inf, np.inf, 1e38]]))
    proba = curve.transform(grid)
    assert ((proba >= 0) & (proba <= 1)).all()
    assert (np.diff(proba) >= -1e-14).all()
    again = kind.from_arrays(curve.arrays())
    assert (again.transform(grid) == proba).all()


@pytest.mark.parametrize("kind", KINDS)
def test_one_sided_and_upside_down_pairs(kind: type[Calibrator]) -> None:
    for hits in (np.zeros(50), np.ones(50)):
        proba = kind.fit(np.linspace(0, 1, 50), hits).transform([0.0, 0.5, 1.0])
        assert np.isfinite(log_loss(proba, [1, 0, 1]))
        np.testing.assert_allclose(proba, hits[0], atol=0.1)
    falling = kind.fit(np.linspace(0, 1, 100), np.linspace(1, 0, 100))
    np.testing.assert_allclose(falling.transform([0.1, 0.9]), 0.5, atol=0.02)


@pytest.mark.parametrize(
    ("name", "curve", "low"),
    [
        ("platt", lambda s: 1 / (1 + np.exp(-(3 * s - 2))), -4),
        ("beta", lambda s: s**2 / (s**2 + (1 - s)), 0),
        ("isotonic", lambda s: np.where(s < 0.5, 0.2, 0.7), 0),
    ],
)
def test_the_right_curve_is_chosen(name: str, curve: Any, low: float) -> None:
    scores, hits = drawn(curve, n=30_000, low=low)
    choice = choose(scores, hits)
    assert choice.calibrator.name == name
    assert choice.losses[name] == min(choice.losses.values())
    assert set(choice.losses) == set(METHODS)


def test_rows_stay_together_in_a_fold() -> None:
    """Each row's pairs are all hits or all misses, its score its own: only leaks could predict."""
    rng = np.random.default_rng(1)
    rows = np.repeat(np.arange(400), 10)
    scores = rng.random(400)[rows]
    hits = (rng.random(400) < 0.5)[rows].astype(float)
    together = choose(scores, hits, rows, method="isotonic").losses["isotonic"]
    apart = choose(scores, hits, method="isotonic").losses["isotonic"]
    assert apart < together


def test_refusals() -> None:
    with pytest.raises(ValueError, match="pair"):
        choose([], [])
    with pytest.raises(ValueError, match=r"\b2\b.*\b1\b"):
        Platt.fit([1, 2], [1])
    with pytest.raises(ValueError, match="NaN"):
        Beta.fit([np.nan], [1])
    with pytest.raises(ValueError, match=r"method.*best"):
        choose([1.0], [1], method="best")
    with pytest.raises(ModelFormatError, match="slope"):
        Platt.from_arrays({"curve": np.array([-1.0, 0.0])})
    with pytest.raises(ModelFormatError, match="rise"):
        Isotonic.from_arrays({"knots": np.array([0.0, 1.0]), "values": np.array([0.5, 0.4])})
    with pytest.raises(ModelFormatError, match="'curve'"):
        Beta.from_arrays({"curve": np.zeros(3)})
