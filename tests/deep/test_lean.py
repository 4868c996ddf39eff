"""Full layers of 32, 16 and 8 bits: exact cases, and kernels against the same in torch."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="torch is not installed")

from longtail.deep.objectives import named  # noqa: E402
from longtail.deep.outputs import Lean, chunks  # noqa: E402
from longtail.deep.outputs.rounding import decoded, nearest  # noqa: E402
from longtail.deep.outputs.stored import Sgd, Stored  # noqa: E402

CPU = torch.device("cpu")


def problem(labels: int = 50, rows: int = 4, width: int = 8) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    Y = (rng.random((rows, labels)) < 0.1).astype(np.float32)
    Y[:, 0] = 1
    h = torch.tensor(rng.normal(size=(rows, width)).astype(np.float32))
    w = torch.tensor(rng.normal(0, 0.3, (labels, width)).astype(np.float32))
    b = torch.tensor(rng.normal(0, 0.3, labels).astype(np.float32))
    return Y, h, w, b


def targets_of(goal: Any, Y: np.ndarray) -> Any:
    return goal.rows(sp.csr_matrix(Y), CPU, 0).take(torch.arange(len(Y)))


def renee(Y: np.ndarray, h: Any, w: Any, b: Any, momentum: float, steps: int) -> tuple[Any, ...]:
    """Plain torch: the summed binary cross-entropy, and its SGD."""
    w, h = w.clone().requires_grad_(), h.clone().requires_grad_()
    sgd = torch.optim.SGD([w], lr=0.05, momentum=momentum, weight_decay=0.01)
    for _ in range(steps):
        sgd.zero_grad()
        h.grad = None
        z = h @ w.T + b
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            z, torch.tensor(Y), reduction="sum"
        )
        loss.backward()
        sgd.step()
    return loss.detach(), h.grad, w.detach()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("labels", [50, 600])
def test_float32_is_renee(labels: int, momentum: float) -> None:
    """One chunk or several, with and without momentum; the gradient of h is from the weights
    before they change.
    """
    Y, h, w, b = problem(labels)
    goal = named("sigmoid", reduction="sum")
    layer = Lean(w.clone(), b, momentum=momentum, weight_decay=0.01)
    for _ in range(3):
        loss, gradient = layer.step(h, targets_of(goal, Y), goal, 0.05, want_loss=True)
    expected = renee(Y, h, w, b, momentum, 3)
    for found, wanted in zip((loss, gradient, layer.weights.raw), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_number_of_chunks_changes_rounding_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    Y, h, w, b = problem(600)
    goal = named("softmax", reduction="sum")
    results = []
    for width in (256, 100, 600):
        monkeypatch.setattr(chunks, "CHUNK", width)
        layer = Lean(w.clone(), b)
        results.append((layer.step(h, targets_of(goal, Y), goal, 0.05)[1], layer.weights.raw))
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["sigmoid", "squared_hinge", "softmax"])
@pytest.mark.parametrize("precision", ["bfloat16", "float8"])
def test_few_bits_are_right_on_average(precision: str, loss: str) -> None:
    """The mean over seeds of the new weights is the float32 step from the same rounded numbers."""
    Y, h, w, b = problem(40)
    reduction = "mean" if loss == "squared_hinge" else "sum"
    goal = named(loss, reduction=reduction)
    rate = 2.0 if reduction == "mean" else 0.05
    start, x = decoded(nearest(w, precision)), decoded(nearest(h, precision))
    exact = Lean(start.clone(), b)
    _, through = exact.step(x, targets_of(goal, Y), goal, rate)
    total = torch.zeros_like(w)
    for seed in range(200):
        layer = Lean(nearest(w, precision), b, precision=precision, seed=seed)
        _, gradient = layer.step(h, targets_of(goal, Y), goal, rate)
        total += decoded(layer.weights.raw)
    torch.testing.assert_close(gradient, through, rtol=0.02, atol=0.02 * float(through.abs().max()))
    away = (total / 200 - exact.weights.raw).abs()
    moved = (exact.weights.raw - start).abs()
    assert float(away.mean()) < (0.02 if precision == "bfloat16" else 0.2) * float(moved.mean())


def test_the_same_seed_gives_the_same_bits_for_any_threads() -> None:
    from longtail.deep.workers import single_threads

    Y, h, w, b = problem(700)
    goal = named("sigmoid", reduction="sum")
    found = []
    for threads in (1, 2, 3):
        with single_threads(threads) as pool:
            layer = Lean(w.clone(), b, precision="float8", pool=pool, seed=3)
            _, gradient = layer.step(h, targets_of(goal, Y), goal, 0.05)
            found.append((layer.weights.raw, gradient))
    for raw, gradient in found[1:]:
        assert torch.equal(raw, found[0][0]) and torch.equal(gradient, found[0][1])


@pytest.mark.parametrize("precision", ["bfloat16", "float8"])
def test_compensation_adds_up_what_rounding_would_lose(precision: str) -> None:
    weights = torch.full((2, 4), 1.0)
    stored = Stored(weights, precision, compensated=torch.tensor([1]))
    small = 0.001  # far below half a step at 1
    for step in range(100):
        stored.update(slice(0, 2), torch.full((2, 4), -small), Sgd(1.0), step)
    ulp = 2.0**-7 if precision == "bfloat16" else 2.0**-3
    assert float((stored.part(slice(1, 2)) - 1.1).abs().max()) <= ulp
    assert stored.arrays()["compensation"].shape == (1, 4)


def test_state_and_what_is_not_finite() -> None:
    Y, h, w, b = problem()
    goal = named("sigmoid", reduction="sum")
    layer = Lean(w, b.clone(), precision="float8", momentum=0.5)
    layer.step(h, targets_of(goal, Y), goal, 0.05)
    other = Lean(torch.zeros_like(w), torch.zeros_like(b), precision="float8", momentum=0.5)
    other.load(layer.arrays(), 1)
    for each in (layer, other):
        each.step(h, targets_of(goal, Y), goal, 0.05)
    assert torch.equal(layer.weights.raw, other.weights.raw)
    assert layer.finite()
    layer.step(h * torch.nan, targets_of(goal, Y), goal, 0.05)
    assert not layer.finite()


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float8"])
def test_top_looks_at_every_label(precision: str) -> None:
    _, h, w, b = problem(1001)
    layer = Lean(w, b, precision=precision)
    z = h @ layer.weights.part(slice(0, 1001)).T + b
    ids, scores = layer.top(h, 5)
    wanted = z.topk(5)
    assert torch.equal(ids, wanted.indices)
    torch.testing.assert_close(scores, wanted.values, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_kernels_do_what_tensor_operations_do() -> None:
    """The kernels, interpreted on a CPU in a process of their own."""
    script = Path(__file__).with_name("interpreted_kernels.py")
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
