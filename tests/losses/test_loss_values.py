"""Values, gradients and identities of the losses; what they refuse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from loss_cases import BASES, batch, numeric_gradient

import longtail as lt
from longtail import losses

ALL: list[Any] = [
    *(losses.OVA(base) for base in BASES),
    *(losses.OVAN(base) for base in BASES),
    losses.OVAN(estimate="unbiased"),
    *(losses.Surrogate(base) for base in BASES),
    losses.Surrogate(balance="after", counts=[1, 2, 3, 4, 50, 6]),
    losses.Surrogate(balance="before", counts=[1, 2, 3, 4, 50, 6], mean_one=True),
    *(losses.PAL(base) for base in ["softmax", *BASES]),
    *(losses.PALN(base) for base in ["softmax", *BASES]),
    losses.PALN(estimate="unbiased"),
    losses.POL(),
    losses.POL("logistic"),
    losses.Unbiased(losses.PALN()),
    losses.Unbiased(losses.PALN(), max_exact=1),
]


@pytest.mark.parametrize("loss", ALL, ids=repr)
@pytest.mark.parametrize("graded", [False, True])
def test_gradients(loss: Any, graded: bool) -> None:
    scores, Y, p = batch()
    if graded:
        if getattr(loss, "estimate", None) == "unbiased":
            pytest.skip("plain labels only")
        Y = Y * np.linspace(0.25, 1, 6, dtype=np.float32)
    value, gradient = loss(scores, Y, p)
    assert value.shape == (7,) and gradient.shape == scores.shape
    np.testing.assert_allclose(gradient, numeric_gradient(loss, scores, Y, p), atol=2e-6)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_complete_labels_give_the_plain_loss_bit_for_bit(loss: Any) -> None:
    scores, Y, _ = batch()
    plain, ones = loss(scores, Y), loss(scores, Y, np.ones(6))
    model = loss(scores, Y, lt.propensity.FixedPropensity().fit(propensity=np.ones(6)))
    for other in (ones, model):
        np.testing.assert_array_equal(plain.value, other.value)
        np.testing.assert_array_equal(plain.gradient, other.gradient)


def test_plain_losses_written_out() -> None:
    scores, Y, _ = batch()
    signed = np.where(Y > 0, scores, -scores)
    hinge = np.maximum(0, 1 - signed).sum(axis=1)
    np.testing.assert_array_equal(losses.OVA("hinge")(scores, Y).value, hinge)
    np.testing.assert_array_equal(losses.Surrogate("hinge")(scores, Y).value, hinge)
    logistic = np.log1p(np.exp(-signed)).sum(axis=1)
    np.testing.assert_allclose(losses.OVA()(scores, Y).value, logistic, rtol=1e-14)
    log_softmax = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(losses.PAL()(scores, Y).value, -(Y * log_softmax).sum(1), rtol=1e-13)
    share = Y / np.maximum(Y.sum(axis=1, keepdims=True), 1)
    expected = -(share * log_softmax).sum(axis=1)
    np.testing.assert_allclose(losses.PALN()(scores, Y).value, expected, rtol=1e-6)
    bce = share * np.log1p(np.exp(-scores)) + (1 - share) * np.log1p(np.exp(scores))
    np.testing.assert_allclose(losses.OVAN()(scores, Y).value, bce.sum(axis=1), rtol=1e-6)


def test_supervised_contrast_of_the_full_pool_is_normalised_picking() -> None:
    """Card 6: scores (2, 1, 0, -1) with positives {0, 1} give .9401897."""
    value = losses.PALN()([[2.0, 1.0, 0.0, -1.0]], [[0, 1]]).value
    assert value[0] == pytest.approx(0.9401897, abs=5e-8)


def test_a_binary_base_takes_the_picked_label_for_the_only_one() -> None:
    scores, Y, p = batch()
    each = np.zeros(len(scores))
    for j in range(6):
        only = np.zeros_like(Y)
        only[:, j] = 1
        each += Y[:, j] / p[j] * losses.OVA()(scores, only).value
    np.testing.assert_allclose(losses.PAL("logistic")(scores, Y, p).value, each, rtol=1e-12)


def test_weights_of_the_card() -> None:
    np.testing.assert_allclose(losses.surrogate_weights([1, 0.5, 0.1]), [1, 3, 19])
    inverse_alone = SimpleNamespace(inverse_=[1, 2, 10])
    np.testing.assert_allclose(losses.surrogate_weights(inverse_alone), [1, 3, 19])
    n, p = np.array([1, 5, 100]), np.array([0.2, 0.5, 0.9])
    c = 0.1 / (1 - 0.9**n)
    after = losses.surrogate_weights(p, n, balance="after")
    np.testing.assert_allclose(after, (2 / p - 1) * c, rtol=1e-12)
    before = losses.surrogate_weights(p, n, balance="before")
    full = 0.1 / (1 - 0.9 ** (n / p))
    np.testing.assert_allclose(before, full / p + 1 / p - 1, rtol=1e-12)
    for order in ("after", "before"):
        same = losses.surrogate_weights(np.ones(3), n, balance=order)
        np.testing.assert_allclose(same, c, rtol=1e-12)
        free = losses.surrogate_weights(p, n, balance=order, beta=0.0)
        np.testing.assert_allclose(free, 2 / p - 1, rtol=1e-12)
        empty = losses.surrogate_weights(p, [0, 1, 0], balance=order)
        assert empty[0] == empty[2] == 0 and np.isfinite(empty).all()
    scaled = losses.surrogate_weights(p, mean_one=True)
    assert scaled.mean() == pytest.approx(1)
    np.testing.assert_allclose(scaled / scaled[0], (2 / p - 1) / (2 / 0.2 - 1))
    nothing = losses.surrogate_weights([0.5, 0.5], [0, 0], balance="after", mean_one=True)
    assert nothing.tolist() == [0, 0]


def test_lighter_negatives_are_the_same_problem() -> None:
    """Card 8.2: positives 1 and negatives p/(2 - p), up to scale."""
    s, p = np.array([[-1.0], [0.5]]), np.array([0.4])
    loss = losses.Surrogate("squared_hinge")
    positive, negative = loss(s, np.ones((2, 1)), p).value, loss(s, np.zeros((2, 1)), p).value
    scale = p / (2 - p)
    np.testing.assert_allclose(positive * scale, np.maximum(0, 1 - s[:, 0]) ** 2)
    np.testing.assert_allclose(negative * scale, scale * np.maximum(0, 1 + s[:, 0]) ** 2)


def test_large_scores_and_empty_input() -> None:
    for loss in ALL:
        if isinstance(loss, losses.Surrogate) and loss.counts is not None:
            continue
        value, gradient = loss([[900.0, -900.0]], [[0]], [0.5, 0.5])
        assert np.isfinite(value).all() and np.isfinite(gradient).all()
        value, gradient = loss(np.zeros((0, 2)), sp.csr_matrix((0, 2)), [0.5, 0.5])
        assert value.shape == (0,) and gradient.shape == (0, 2)


@given(st.lists(st.floats(0.05, 1.0), min_size=1, max_size=7), st.integers(0, 2**32 - 1))
def test_the_integral_is_the_sum_over_all_subsets(p: list[float], seed: int) -> None:
    y = (np.random.default_rng(seed).random((1, len(p))) < 0.7).astype(np.float32)
    quick = losses.normalized_weights(y, p, estimate="unbiased").toarray()

    def shares(scores: np.ndarray, Y: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(scores)), losses.normalized_weights(Y).toarray()

    slow = losses.Unbiased(shares)(np.zeros(y.shape), y, p).gradient
    size = np.prod(2 / np.array(p) - 1)
    np.testing.assert_allclose(quick, slow, atol=1e-13 * size, rtol=1e-9)


def test_no_label_in_any_row() -> None:
    for loss in ALL:
        value, gradient = loss(np.zeros((2, 6)), sp.csr_matrix((2, 6)), np.full(6, 0.5))
        assert value.dtype == gradient.dtype == np.float64
        if not isinstance(loss, (losses.PAL, losses.PALN, losses.POL)):
            continue
        assert not value.any() and not gradient.any()
        with np.errstate(all="raise"):
            assert loss(np.zeros((2, 0)), sp.csr_matrix((2, 0))).gradient.shape == (2, 0)


@pytest.mark.parametrize("estimate", ["bound", "unbiased"])
def test_shares_do_not_share_memory_with_the_labels(estimate: str) -> None:
    Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 0, 1]], np.float32))
    before = Y.toarray()
    share = losses.normalized_weights(Y, [0.5, 0.5, 0.5], estimate=estimate)
    share.data[0] = 0
    share.eliminate_zeros()  # in place
    np.testing.assert_array_equal(Y.toarray(), before)


def test_draws() -> None:
    scores, Y, p = batch()
    first, again = (losses.POL(random_state=5)(scores, Y, p) for _ in range(2))
    np.testing.assert_array_equal(first.value, again.value)
    fresh = losses.POL(random_state=np.random.default_rng(0))
    assert (fresh(scores, Y, p).value != fresh(scores, Y, p).value).any()
    assert first.value[0] == 0, "a row without labels has nothing to pick"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.OVA()([1.0], [[0]]), "scores"),
        (lambda: losses.OVA()([[np.nan]], [[0]]), "scores"),
        (lambda: losses.OVA()([[1.0], [2.0]], [[0]]), r"\b2\b.*\b1\b"),
        (lambda: losses.OVA()([[1.0, 2.0]], np.ones((1, 3))), r"\b3\b.*\b2\b"),
        (lambda: losses.OVA()([[1.0]], [[0]], [0.0]), r"label 0.*\b0\b.*\(0, 1\]"),
        (lambda: losses.OVA()([[1.0]], [[0]], [2.0]), "label 0.* 2.*1/q"),
        (lambda: losses.OVA()([[1.0]], [[0]], [np.nan]), "label 0.*nan"),
        (lambda: losses.OVA()([[1.0]], [[0]], [1e-310]), "1e-310"),
        (lambda: losses.OVA()([[1.0]], [[0]], [0.5, 0.5]), r"\b1\b.*\(2,\)"),
        (lambda: losses.OVA()([[1.0]], [[0]], lt.JainPropensity()), "JainPropensity"),
        (lambda: losses.OVA("softmax")([[1.0]], [[0]]), "logistic.*softmax"),
        (lambda: losses.PAL("log")([[1.0]], [[0]]), "softmax.*'log'"),
        (lambda: losses.PALN(estimate="exact")([[1.0]], [[0]]), "estimate.*exact"),
        (
            lambda: losses.normalized_weights(np.array([[0.5]]), estimate="unbiased"),
            "plain labels",
        ),
        (lambda: losses.surrogate_weights([0.5], balance="both"), "balance.*both"),
        (lambda: losses.surrogate_weights([0.5], balance="after"), "counts"),
        (lambda: losses.surrogate_weights(None), "propensity"),
        (lambda: losses.class_balance([1], beta=1.0), "beta"),
        (lambda: losses.class_balance([-1]), "counts"),
        (lambda: losses.Unbiased(losses.OVA(), draw="all")([[1.0]], [[0]]), "draw.*all"),
        (lambda: losses.Unbiased(losses.OVA(), max_exact=40)([[1.0]], [[0]]), "max_exact.*40"),
        (lambda: losses.Unbiased(losses.OVA(), n_draws=0)([[1.0]], [[0]]), "n_draws"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_a_beta_of_zero_balances_nothing() -> None:
    with np.errstate(all="raise"):
        assert losses.class_balance([0, 1, 5], beta=0).tolist() == [0, 1, 1]


def test_scores_that_are_no_numbers() -> None:
    with pytest.raises(TypeError, match="scores"):
        losses.OVA()([["a"]], [[0]])
    with pytest.raises(TypeError, match="propensity"):
        losses.OVA()([[1.0]], [[0]], object())


def test_how_many_sub_sets_are_drawn() -> None:
    calls: list[int] = []

    def counted(scores: np.ndarray, Y: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        calls.append(Y.shape[0])
        return np.ones(Y.shape[0]), np.zeros(scores.shape)

    losses.Unbiased(counted, max_exact=1)(np.zeros((1, 3)), [[0, 1, 2]], [0.5, 0.5, 0.5])
    losses.Unbiased(counted, max_exact=1, n_draws=7)(np.zeros((1, 3)), [[0, 1, 2]], [0.5] * 3)
    assert calls == [32, 7]
    losses.Unbiased(counted, max_exact=0)(np.zeros((1, 1)), [[0]], [0.5])
    assert calls[2:] == [32]


def test_draws_are_the_same_by_default() -> None:
    scores, Y, p = batch()
    plain, zero, one = (
        losses.Unbiased(losses.PALN(), max_exact=0, **seed)(scores, Y, p).value
        for seed in ({}, {"random_state": 0}, {"random_state": 1})
    )
    np.testing.assert_array_equal(plain, zero)
    assert (plain != one).any()


def test_a_hinge_is_flat_from_its_corner_on() -> None:
    value, gradient = losses.OVA("hinge")(np.array([[1.0, -1.0]]), [[0]])
    assert value.tolist() == [0] and not gradient.any()
