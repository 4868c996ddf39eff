"""What the training of a network takes, told before it begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import longtail as lt

torch = pytest.importorskip("torch", reason="torch is not installed")

from longtail.deep.output_plan import OutputPlan  # noqa: E402
from longtail.deep.training.cost import Cost  # noqa: E402
from longtail.deep.training.output_cost import layer_memory  # noqa: E402
from longtail.deep.training.plan import Plan  # noqa: E402

GIB = 1 << 30
LABELS, WIDTH = 3_000_000, 512


def test_memory_is_what_the_layers_hold() -> None:
    plan = Plan(1, 128, 1e-3, 0, 1, "cpu", "float32")
    full = layer_memory(OutputPlan(), plan, LABELS, WIDTH)
    assert full["output weights"] + full["Adam's moments"] == 12 * LABELS * WIDTH
    low = OutputPlan(precision="float8", optimiser="sgd", compensated=0.25)
    told = layer_memory(low, plan, LABELS, WIDTH)
    assert told["output weights"] == LABELS * WIDTH == 4 * told["compensation"]
    few = layer_memory(OutputPlan(fan_in=16), plan, LABELS, WIDTH)
    assert few["output values"] + few["output index"] == LABELS * 16 * 6
    wide = layer_memory(OutputPlan(fan_in=16, hidden=100_000), plan, LABELS, WIDTH)
    assert wide["output index"] == LABELS * 16 * 4


@pytest.mark.parametrize("params", [{}, {"fan_in": 4}, {"output_precision": "float8"}])
def test_networks_tell_what_they_take(params: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((50, 30)).astype("f"), rng.integers(0, 2, (50, 200))
    told = lt.Network(hidden=16, batch_size=32, **params).plan(X, Y, memory_limit=40_000)
    assert told.total_seconds > 0 and told.total_memory > 0
    assert told.choices["float32, Adam"] > told.choices["bfloat16"] > told.choices["float8"]
    assert told.best in (None, *told.choices)
    assert "output layer" in str(told) and "first that fits" in str(told)


def test_text_networks_tell_what_they_take() -> None:
    model = lt.TextNetwork(encoder="average", device="cpu", n_jobs=1, batch_size=4)
    texts = ["a red fox", "two foxes", "red wine", "wine and foxes"] * 3
    told = model.plan(texts, np.eye(12, dtype=np.float32))
    assert told.total_seconds > 0 and told.memory["encoder and its optimiser"] > 0
    assert told.memory_limit is None and told.best == "float32, Adam"


def test_the_first_that_fits() -> None:
    sizes = {"large": 10 * GIB, "small": GIB}
    for limit, best in ((20 * GIB, "large"), (2 * GIB, "small"), (1000, None)):
        assert Cost("cpu", {}, {}, 1, sizes, limit).best == best
