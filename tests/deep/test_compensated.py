"""AdamW on bfloat16 weights, compensated: against AdamW in float32."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from longtail.deep.optimisers import CompensatedAdamW  # noqa: E402


def layer() -> torch.nn.Linear:
    made = torch.nn.Linear(3, 2)
    torch.nn.init.ones_(made.weight)
    torch.nn.init.ones_(made.bias)
    return made


def taken(module: torch.nn.Module, optimiser: object, steps: int, rate: float) -> None:
    for step in range(steps):
        for parameter in module.parameters():
            parameter.grad = torch.full_like(parameter, 1.0 + 0.1 * (step % 3))
        if isinstance(optimiser, CompensatedAdamW):
            optimiser.step(rate)
        else:
            optimiser.step()


def test_updates_below_the_last_bit_add_up() -> None:
    """A step of 1e-4 at 1 is a thirtieth of the distance to the next bfloat16 number."""
    plain, low = layer(), layer()
    exact = torch.optim.AdamW(
        [
            {"params": [plain.weight], "weight_decay": 0.1},
            {"params": [plain.bias], "weight_decay": 0.0},
        ],
        lr=1e-4,
    )
    compensated = CompensatedAdamW(low, 0.1)
    assert low.weight.dtype == torch.bfloat16
    taken(plain, exact, 300, 1e-4)
    taken(low, compensated, 300, 1e-4)
    for name in ("weight", "bias"):
        wanted, found = getattr(plain, name).detach(), getattr(low, name).detach().float()
        assert float((wanted - found).abs().max()) < 2.0**-8  # half a step at 1
        assert float((wanted - 1).abs().max()) > 0.025


def test_state() -> None:
    one, other = layer(), layer()
    first, second = CompensatedAdamW(one, 0.0), CompensatedAdamW(other, 0.0)
    taken(one, first, 7, 1e-3)
    saved = {name: array.clone() for name, array in first.arrays().items()}
    for array in saved.values():
        array.numpy()  # what a checkpoint writes
    second.load(saved, 7)
    for module, optimiser in ((one, first), (other, second)):
        taken(module, optimiser, 5, 1e-3)
    assert torch.equal(one.weight, other.weight)
