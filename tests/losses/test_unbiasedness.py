"""Means over all masks: what is unbiased is so to rounding, what is a bound lies above."""

from __future__ import annotations

import numpy as np
import pytest
from loss_cases import BASES, expectation, masks, problems

from longtail import losses

MULTICLASS = ["softmax", *BASES]


def clean(loss: object, s: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    value, gradient = loss(s[None], y[None])  # type: ignore[operator]
    return float(value[0]), gradient[0]


@pytest.mark.parametrize(
    "make",
    [
        *(lambda base=base: losses.OVA(base) for base in BASES),
        *(lambda base=base: losses.PAL(base) for base in MULTICLASS),
        *(lambda base=base: losses.PALN(base, "unbiased") for base in MULTICLASS),
        *(lambda base=base: losses.OVAN(base, "unbiased") for base in BASES),
    ],
)
def test_unbiased_losses(make: object) -> None:
    loss = make()  # type: ignore[operator]
    for s, y, p in problems():
        value, gradient = expectation(loss, s, y, p)
        expected, slope = clean(loss, s, y)
        assert value == pytest.approx(expected, abs=1e-12, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, atol=1e-12)


@pytest.mark.parametrize(
    "inner", [losses.OVA("hinge"), losses.PALN(), losses.OVAN("squared_hinge"), losses.PAL()]
)
@pytest.mark.parametrize("grade", [1.0, 0.5])
def test_the_general_estimate_of_any_loss(inner: object, grade: float) -> None:
    loss = losses.Unbiased(inner)  # type: ignore[arg-type]
    for s, y, p in problems():
        y = y * np.where(np.arange(len(y)) % 2, grade, 1.0)
        value, gradient = expectation(loss, s, y, p)
        expected, slope = clean(inner, s, y)
        assert value == pytest.approx(expected, abs=1e-12, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, atol=1e-12)


def test_three_labels_and_the_misprinted_sign() -> None:
    """Card 8.4: with 1 - p for dropped labels, the same sum is far off."""
    s, y, p = np.array([[2.0, -1.0, 0.5]]), np.ones(3), np.array([0.3, 0.5, 0.4])
    plain = losses.PALN()
    value, _ = expectation(losses.Unbiased(plain), s[0], y, p)
    assert value == pytest.approx(plain(s, y[None]).value[0], abs=1e-14)

    def misprinted(scores: np.ndarray, Y: np.ndarray, p: np.ndarray) -> losses.LossValue:
        out = np.zeros(len(Y))
        for i, row in enumerate(Y):
            for kept in masks(3):
                if (kept <= (row > 0)).all():
                    dropped = (row > 0) & ~kept
                    weight = np.prod(1 / p[row > 0]) * np.prod(1 - p[dropped])
                    out[i] += weight * plain(scores[[i]], kept[None].astype(float)).value[0]
        return losses.LossValue(out, np.zeros_like(scores))

    wrong, _ = expectation(misprinted, s[0], y, p)
    assert abs(wrong - plain(s, y[None]).value[0]) > 1


def recall(scores: np.ndarray, Y: object) -> losses.LossValue:
    """Of the answer {0}."""
    dense = Y.toarray() if hasattr(Y, "toarray") else np.asarray(Y)
    sizes = np.maximum(dense.sum(axis=1), 1)
    return losses.LossValue(dense[:, 0] / sizes, np.zeros(scores.shape))


def test_recall_of_the_card() -> None:
    observed = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    p = np.array([0.5, 0.5])
    value = losses.Unbiased(recall)(np.zeros((4, 2)), observed, p).value
    np.testing.assert_array_equal(value, [0, 0, 2, 0])
    assert value.mean() == 0.5
    unbiased = losses.normalized_weights(observed, p, estimate="unbiased").toarray()[:, 0]
    np.testing.assert_allclose(unbiased, [0, 0, 2, 0], atol=1e-15)
    bound = losses.normalized_weights(observed, p).toarray()[:, 0]
    assert bound.mean() == pytest.approx(2 / 3, abs=1e-15)


def test_the_bound_lies_above() -> None:
    def shares(scores: np.ndarray, Y: np.ndarray, p: np.ndarray) -> losses.LossValue:
        weights = losses.normalized_weights(Y, p).toarray()
        return losses.LossValue(weights.sum(axis=1), weights)

    for s, y, p in problems(n=30):
        _, mean = expectation(shares, s, y, p)
        exact = losses.normalized_weights(y[None]).toarray()[0]
        assert (mean >= exact - 1e-12).all()
        bound, _ = expectation(losses.PALN(), s, y, p)
        assert bound >= losses.PALN()(s[None], y[None]).value[0] - 1e-12


def test_normalised_one_vs_all_is_no_bound() -> None:
    """Card 8.5: l1 - l0 is negative for a high score, and a share too large takes off too much."""
    s, y, p = np.array([4.0, 3.0]), np.ones(2), np.array([0.4, 0.4])
    value, _ = expectation(losses.OVAN(), s, y, p)
    assert value < losses.OVAN()(s[None], y[None]).value[0] - 0.1


@pytest.mark.parametrize("base", ["hinge", "logistic"])
def test_the_corrected_loss_has_no_lower_bound(base: str) -> None:
    """Card 8, trap (a)."""
    far = losses.OVA(base)([[1e3], [1e6]], [[0], [0]], [0.5]).value
    assert far[0] < -900 and far[1] < -9e5
    assert losses.Surrogate(base)([[1e6]], [[0]], [0.5]).value[0] >= 0


def test_estimates_differ_by_a_function_without_scores() -> None:
    """Uniqueness: unbiased one-vs-all and the general estimate of it are the same function."""
    for s, y, p in problems():
        a = losses.OVA()(s[None], y[None], p)
        b = losses.Unbiased(losses.OVA())(s[None], y[None], p)
        np.testing.assert_allclose(a.value, b.value, atol=1e-12)
        np.testing.assert_allclose(a.gradient, b.gradient, atol=1e-12)


def test_variance_explodes_for_the_estimate_and_not_for_the_bound() -> None:
    """Card 8: 100 labels with marginal 0.1, propensities from 0.9 to 0.2."""
    rng = np.random.default_rng(0)
    Y = rng.random((400, 100)) < 0.1
    chosen = np.arange(100) < 5
    spread = {}
    for p in (0.9, 0.6, 0.3):
        seen = (Y & (rng.random(Y.shape) < p)).astype(np.float32)
        for estimate in ("bound", "unbiased"):
            weights = losses.normalized_weights(seen, np.full(100, p), estimate=estimate)
            spread[estimate, p] = float((weights @ chosen).var())
    assert spread["unbiased", 0.6] < 0.05 and spread["bound", 0.6] < 0.05
    assert spread["unbiased", 0.3] > 10 and spread["bound", 0.3] < 0.5


@pytest.mark.parametrize("draw", ["weight", "half"])
def test_monte_carlo_agrees_with_enumeration(draw: str) -> None:
    s, y, p = np.array([1.0, -2.0, 0.5, 3.0]), np.ones((1, 4)), np.array([0.5, 0.8, 0.6, 1.0])
    exact = losses.Unbiased(losses.PALN())(s[None], y, p)
    drawn = losses.Unbiased(losses.PALN(), max_exact=0, n_draws=200_000, draw=draw, random_state=1)(
        s[None], y, p
    )
    np.testing.assert_allclose(drawn.value, exact.value, rtol=0.05)
    np.testing.assert_allclose(
        drawn.gradient, exact.gradient, atol=0.05 * abs(exact.gradient).max()
    )


def test_balanced_draws_vary_less() -> None:
    y, p = np.ones((300, 12)), np.full(12, 0.8)
    s = np.random.default_rng(0).normal(size=(1, 12)).repeat(300, 0)
    spread = {}
    for draw in ("weight", "half"):
        loss = losses.Unbiased(losses.PALN(), max_exact=4, draw=draw)
        spread[draw] = loss(s, y, p).value.std()
    assert spread["weight"] < spread["half"] / 3


def test_pick_one_label_is_its_normalised_sum_on_average() -> None:
    s, y, p = next(problems(seed=4))
    y = np.ones_like(y)
    n = 40_000
    many = losses.POL(random_state=3)(np.tile(s, (n, 1)), np.tile(y, (n, 1)), p)
    exact = losses.PALN()(s[None], y[None], p)
    np.testing.assert_allclose(many.value.mean(), exact.value[0], rtol=0.02)
    np.testing.assert_allclose(many.gradient.mean(axis=0), exact.gradient[0], atol=0.02)


def test_unbiased_zero_one_loss_is_the_surrogate_and_a_constant() -> None:
    """Card 8.2: (2/p - 1) 1[s < 0] for an observed label, 1[s >= 0] for an absent one."""
    zero_one = losses.BinaryLoss(
        lambda s: ((s < 0).astype(float), np.zeros_like(s)),
        lambda s: ((s >= 0).astype(float), np.zeros_like(s)),
    )
    s, p = np.array([[-1.0], [1.0]]), np.array([0.3])
    for observed in (np.zeros((2, 1)), np.ones((2, 1))):
        a = losses.OVA(zero_one)(s, observed, p).value
        b = losses.Surrogate(zero_one)(s, observed, p).value
        assert a[0] - a[1] == pytest.approx(b[0] - b[1], abs=1e-12)
