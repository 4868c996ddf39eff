"""The losses in torch are those in NumPy: value and gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longtail import losses

torch = pytest.importorskip("torch", reason="torch is not installed")

BASES = list(losses.BINARY_LOSSES)
COUNTS = [1, 2, 3, 4, 50, 6]
CASES: list[tuple[str, dict[str, Any]]] = [
    *(("OVA", {"base": base}) for base in BASES),
    *(("OVAN", {"base": base, "estimate": e}) for base in BASES for e in ("bound", "unbiased")),
    *(("Surrogate", {"base": base}) for base in BASES),
    ("Surrogate", {"balance": "after", "counts": COUNTS}),
    ("Surrogate", {"balance": "before", "counts": COUNTS, "beta": 0.5, "mean_one": True}),
    *(("PAL", {"base": base}) for base in ["softmax", *BASES]),
    *(("PALN", {"base": base}) for base in ["softmax", *BASES]),
    ("PALN", {"estimate": "unbiased"}),
    *(("POL", {"base": base, "random_state": 4}) for base in ["softmax", *BASES]),
]


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = (rng.random((9, 6)) < 0.5).astype(np.float32)
    Y[0] = 0
    return rng.normal(size=(9, 6)) * 3, Y, rng.uniform(0.2, 1.0, 6)


def both(name: str, params: dict[str, Any], scores: Any, Y: Any, p: Any) -> None:
    from longtail.deep import losses as deep

    expected = getattr(losses, name)(**params)(scores, Y, p)
    s = torch.tensor(scores, requires_grad=True)
    value = getattr(deep, name)(**params)(
        s, torch.tensor(Y), None if p is None else torch.tensor(p)
    )
    value.sum().backward()
    np.testing.assert_allclose(value.detach().numpy(), expected.value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(s.grad.numpy(), expected.gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "params"), CASES, ids=str)
def test_torch_equals_numpy(name: str, params: dict[str, Any]) -> None:
    scores, Y, p = problem()
    both(name, params, scores, Y, p)
    both(name, params, scores, Y, None)
    if params.get("estimate") != "unbiased":  # graded labels
        both(name, params, scores, Y * np.linspace(0.25, 1, 6, dtype=np.float32), p)


@pytest.mark.parametrize("max_exact", [10, 1])
@pytest.mark.parametrize("inner", ["PALN", "OVA"])
def test_the_general_estimate(inner: str, max_exact: int) -> None:
    from longtail.deep import losses as deep

    scores, Y, p = problem()
    expected = losses.Unbiased(getattr(losses, inner)(), max_exact=max_exact)(scores, Y, p)
    s = torch.tensor(scores, requires_grad=True)
    loss = deep.Unbiased(getattr(deep, inner)(), max_exact=max_exact)
    value = loss(s, torch.tensor(Y), torch.tensor(p))
    value.sum().backward()
    np.testing.assert_allclose(value.detach().numpy(), expected.value, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(s.grad.numpy(), expected.gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["OVA", "OVAN", "Surrogate", "PAL", "PALN", "POL"])
def test_single_precision_stays_single(name: str) -> None:
    from longtail.deep import losses as deep

    scores, Y, p = problem()
    value = getattr(deep, name)()(torch.tensor(scores).float(), torch.tensor(Y), torch.tensor(p))
    assert value.dtype == torch.float32
    expected = getattr(losses, name)()(scores, Y, p).value
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_refusals() -> None:
    from longtail.deep import losses as deep

    s, y, p = torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(3)
    with pytest.raises(ValueError, match="scores and Y must both be"):
        deep.OVA()(s, y[:1], p)
    with pytest.raises(ValueError, match="one number for each of the 3 labels"):
        deep.PAL()(s, y, p[:2])
    for loss in (deep.OVA("x"), deep.PAL("x"), deep.PALN(estimate="x")):
        with pytest.raises(ValueError, match="must be one of"):
            loss(s, y, p)
