"""Weights of 16 and 8 bits: what the bits stand for, and rounding without a bias."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from longtail.deep.outputs.rounding import (  # noqa: E402
    decoded,
    nearest,
    random_bits,
    stochastic,
)

CPU = torch.device("cpu")
DRAWS = 1_000_000


def every_number(precision: str) -> tuple[torch.Tensor, torch.Tensor]:
    """All raw values that stand for a number, and the numbers, as torch reads them."""
    if precision == "bfloat16":
        raw = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16)
        numbers = raw.view(torch.bfloat16).float()
    else:
        raw = torch.arange(256, dtype=torch.int32).to(torch.uint8)
        numbers = raw.view(torch.float8_e4m3fn).float()
    there = torch.isfinite(numbers)
    return raw[there], numbers[there]


@pytest.mark.parametrize("precision", ["bfloat16", "float8"])
def test_numbers_of_the_format_are_fixed_points(precision: str) -> None:
    raw, numbers = every_number(precision)
    assert torch.equal(decoded(raw), numbers)
    assert torch.equal(decoded(nearest(numbers, precision)), numbers)
    for bits in (0, (1 << 32) - 1):
        drawn = stochastic(numbers, precision, torch.full(numbers.shape, bits))
        assert torch.equal(decoded(drawn), numbers)


@pytest.mark.parametrize(
    ("precision", "value"),
    [
        ("bfloat16", 0.3),
        ("bfloat16", -1e-3),
        ("bfloat16", 1e-40),  # subnormal in bfloat16 too
        ("float8", 0.3),
        ("float8", -17.3),
        ("float8", 0.014),  # below 2^-6: the grid is fixed at 2^-9
        ("float8", -0.001),
        ("float8", 3e-5),
        ("float8", 2**-6 - 1e-5),
        ("float8", 447.0),
    ],
)
def test_the_mean_of_a_million_draws_is_the_number(precision: str, value: float) -> None:
    values = torch.full((DRAWS,), value)
    drawn = decoded(stochastic(values, precision, random_bits(7, values.shape, CPU))).double()
    both = drawn.unique()
    assert len(both) == 2 and both[0] < values[0] < both[1]  # its two neighbours in the format
    spread = float((both[1] - both[0]) / 2)
    assert abs(float(drawn.mean()) - float(values[0])) < 4 * spread / DRAWS**0.5


def test_the_largest_number_is_the_end() -> None:
    values = torch.tensor([449.0, 1e30, -1e30])
    bits = random_bits(0, values.shape, CPU)
    ends = torch.tensor([448.0, 448.0, -448.0])
    assert torch.equal(decoded(stochastic(values, "float8", bits)), ends)
    assert torch.equal(decoded(nearest(values, "float8")), ends)


def test_what_is_no_number_stays_none() -> None:
    bits = random_bits(0, torch.Size([1]), CPU)
    for precision in ("bfloat16", "float8"):
        raw = stochastic(torch.tensor([torch.nan]), precision, bits)
        kinds = {"bfloat16": torch.bfloat16, "float8": torch.float8_e4m3fn}
        assert torch.isnan(raw.view(kinds[precision]).float()).all()


def test_random_bits_of_seeds_and_places() -> None:
    first, again, other = (random_bits(seed, torch.Size([1000]), CPU) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert int(first.min()) >= 0 and int(first.max()) < 1 << 32
    assert abs(float(first.double().mean()) / 2**31 - 1) < 0.1
