"""What a training takes, told before it begins."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import longtail as lt

GIB = 1 << 30


def test_memory_is_what_the_layers_hold() -> None:
    model = lt.TextNetwork(output_precision="float8", device="cpu")
    told = model.plan(1000, 3_000_000, width=512, n_weights=1000, measure=False)
    assert told.parts["output weights"] == 3_000_000 * 512
    assert told.choices["float32, Adam"] > 12 * 3_000_000 * 512
    assert told.seconds is None and told.best is None
    assert "3,000,000 labels" in str(told)


def test_the_first_that_fits() -> None:
    model = lt.TextNetwork(device="cpu")
    limits = {40: "float32, Adam", 10: "float32, SGD", 4: "bfloat16", 2.5: "float8", 0.5: None}
    for gib, best in limits.items():
        told = model.plan(1000, 3_000_000, width=512, memory_limit=int(gib * GIB), measure=False)
        assert told.best == best, gib
    few = lt.TextNetwork(fan_in=16, device="cpu").plan(
        1000, 3_000_000, width=512, memory_limit=2 * GIB, measure=False
    )
    assert few.parts["output values"] + few.parts["output index"] == 3_000_000 * 16 * 6
    assert few.best == "float8" and few.choices["fan_in=16"] < 2 * GIB


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("params", [{}, {"fan_in": 4}, {"output_precision": "float8"}])
def test_time_is_measured(params: dict[str, object]) -> None:
    told = lt.Network(hidden=16, batch_size=32, **params).plan(64, 100, 1000)
    assert told.seconds is not None and told.seconds > 0
    assert "per epoch" in str(told)


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="n_labels"):
        lt.Network().plan(10, 10, 0)
