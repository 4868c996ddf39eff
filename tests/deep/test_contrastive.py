"""Losses over a pool of labels: exact cases, identities, gradients."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from longtail.deep.objectives import Decoupled, Softmax, SupCon, Triplet  # noqa: E402

SCORES = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
RIGHT = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
ALL = torch.ones(1, 4, dtype=torch.bool)
KINDS = [SupCon(), SupCon(temperature=0.3), Decoupled(), Decoupled(temperature=0.3), Triplet()]
KINDS += [Triplet(margin=2.0, hardest=2), SupCon(reduction="sum")]


def problem(seed: int = 0, b: int = 7, s: int = 11) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(seed)
    targets = rng.random((b, s)) < 0.3
    targets[0] = False  # a row without positives
    targets[1] = True  # and one without negatives
    present = rng.random((b, s)) < 0.9
    z = torch.tensor(rng.standard_normal((b, s)))
    return z, torch.tensor(targets, dtype=torch.float64), torch.tensor(present)


def test_exact_cases() -> None:
    assert float(SupCon().on_pool(SCORES, RIGHT, None, ALL)[0]) == pytest.approx(0.9401897)
    assert float(Decoupled().on_pool(SCORES, RIGHT, None, ALL)[0]) == pytest.approx(0.2887260)
    # The hardest negative has 0: only the second positive is within 1.5 of it.
    value, gradient = Triplet(margin=1.5).on_pool(SCORES, RIGHT, None, ALL)
    assert float(value) == pytest.approx(0.25)
    assert gradient.tolist() == [[0.0, -0.5, 0.5, 0.0]]


def test_one_positive_makes_them_equal() -> None:
    one = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    values = [kind.on_pool(SCORES, one, None, ALL) for kind in (SupCon(), Decoupled())]
    assert float(values[0][0]) == pytest.approx(float(values[1][0]))
    torch.testing.assert_close(values[0][1], values[1][1])


def test_all_labels_in_the_pool_is_pal_n() -> None:
    z, targets, _ = problem()
    present = torch.ones_like(targets, dtype=torch.bool)
    has = targets.sum(1) > 0
    ours = SupCon(reduction="sum").on_pool(z.float(), targets.float(), None, present)
    theirs = Softmax(reduction="sum").on_pool(z.float(), targets.float(), None, present)
    assert float(ours[0]) == pytest.approx(float(theirs[0]), rel=1e-6)
    torch.testing.assert_close(ours[1][has], theirs[1][has])


def test_a_positive_does_not_feel_the_others() -> None:
    moved = SCORES.clone()
    moved[0, 0] = 7.0
    before, after = (Decoupled().on_pool(z, RIGHT, None, ALL)[1] for z in (SCORES, moved))
    assert float(before[0, 1]) == float(after[0, 1])
    before, after = (SupCon().on_pool(z, RIGHT, None, ALL)[1] for z in (SCORES, moved))
    assert float(before[0, 1]) != float(after[0, 1])


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_gradients_are_those_of_the_values(kind: Softmax) -> None:
    z, targets, present = problem()
    value, gradient = kind.on_pool(z, targets, None, present)
    assert torch.isfinite(value) and torch.isfinite(gradient).all()
    step = 1e-6
    for i in range(len(z)):
        for j in range(z.shape[1]):
            up, down = z.clone(), z.clone()
            up[i, j] += step
            down[i, j] -= step
            slope = kind.on_pool(up, targets, None, present)[0]
            slope = (slope - kind.on_pool(down, targets, None, present)[0]) / (2 * step)
            assert float(gradient[i, j]) == pytest.approx(float(slope), abs=1e-6), (i, j)
    assert (gradient[~present] == 0).all()


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_nothing_to_learn(kind: Softmax) -> None:
    z = torch.zeros(2, 3)
    for targets in (torch.zeros(2, 3), torch.ones(2, 3)):
        for present in (torch.ones(2, 3, dtype=torch.bool), torch.zeros(2, 3, dtype=torch.bool)):
            value, gradient = kind.on_pool(z, targets, None, present)
            assert torch.isfinite(value) and torch.isfinite(gradient).all()
            if not targets.any() or not present.any():
                assert float(value) == 0 and not gradient.any()


def test_no_loss_over_all_labels() -> None:
    with pytest.raises(TypeError, match="pools"):
        Decoupled().bind(None, [0, 1])
    with pytest.raises(ValueError, match="temperature"):
        SupCon(temperature=0.0)
