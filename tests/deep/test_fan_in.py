"""Layers of a few weights per label: against the dense layer with the scattered matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="torch is not installed")

from longtail.deep.adam import Adam, AdamArray  # noqa: E402
from longtail.deep.objectives import named  # noqa: E402
from longtail.deep.outputs import FanIn, Full  # noqa: E402
from longtail.deep.outputs.clustered import Clustered, cluster_targets  # noqa: E402
from longtail.deep.outputs.fan_in import Rewiring, drawn_index, memory_of  # noqa: E402

CPU = torch.device("cpu")
F, LABELS, WIDTH, ROWS = 6, 70, 20, 33


def problem(kind: Any = np.uint16, inputs: int = WIDTH, f: int = F) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    index = torch.tensor(rng.integers(0, inputs, (f, LABELS)).astype(kind))
    values = torch.tensor(rng.normal(size=(f, LABELS)).astype(np.float32))
    bias = torch.tensor(rng.normal(size=LABELS).astype(np.float32))
    h = torch.tensor(rng.normal(size=(ROWS, WIDTH)).astype(np.float32))
    Y = sp.csr_matrix((rng.random((ROWS, LABELS)) < 0.1).astype(np.float32))
    return values, index, bias, h, Y


def scattered(values: Any, index: Any, inputs: int) -> Any:
    """The dense matrix (L, h) of the layer; weights of the same input add up."""
    out = torch.zeros(values.shape[1], inputs)
    at = index.long()
    rows = torch.arange(values.shape[1]).expand(len(at), -1)
    return out.index_put_((rows, at), values, accumulate=True)


def targets_of(goal: Any, Y: Any) -> Any:
    return goal.rows(Y, CPU, 0).take(torch.arange(Y.shape[0]))


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
@pytest.mark.parametrize("loss", ["sigmoid", "squared_hinge", "softmax"])
def test_a_step_is_that_of_the_scattered_matrix(loss: str, kind: Any) -> None:
    values, index, bias, h, Y = problem(kind)
    goal = named(loss, reduction="mean" if loss == "squared_hinge" else "sum")
    layer = FanIn(values.clone(), index, bias.clone(), WIDTH)
    dense, x = scattered(values, index, WIDTH).requires_grad_(), h.clone().requires_grad_()
    b = bias.clone().requires_grad_()
    z = x @ dense.T + b
    torch.testing.assert_close(layer.scores(h, slice(0, LABELS)), z.detach(), rtol=1e-4, atol=1e-5)
    bound = goal.bind(targets_of(goal, Y), [0, LABELS])
    whole = slice(0, LABELS)
    if bound.looks:
        bound.settle([bound.look(z.detach(), whole)])
    z.backward(bound.gradient(z.detach() - bias, bias, whole))
    loss_value, gradient = layer.step(h, targets_of(goal, Y), goal, 0.01, want_loss=True)
    torch.testing.assert_close(gradient, x.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(loss_value, bound.value(z.detach(), whole), rtol=1e-4, atol=1e-5)
    expected = dense.grad.T.gather(0, index.long())
    torch.testing.assert_close(layer.values.first, 0.1 * expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(layer.bias.first, 0.1 * b.grad, rtol=1e-4, atol=1e-6)
    array = AdamArray.starting(values.clone())
    array.update(expected, Adam(0.01), 1)
    clear = expected.abs() > 1e-6
    torch.testing.assert_close(
        layer.values.values[clear], array.values[clear], rtol=1e-3, atol=1e-4
    )


def test_all_inputs_are_a_dense_layer() -> None:
    rng = np.random.default_rng(3)
    _, _, bias, h, Y = problem()
    index = drawn_index(rng, WIDTH, LABELS, WIDTH)
    dense = torch.tensor(rng.normal(size=(LABELS, WIDTH)).astype(np.float32))
    few = FanIn(dense.T.contiguous(), torch.tensor(index), bias.clone(), WIDTH)
    full = Full(dense.clone(), bias.clone())
    goal = named("sigmoid", reduction="sum")
    for _ in range(3):
        found = few.step(h, targets_of(goal, Y), goal, 0.01)[1]
        wanted = full.step(h, targets_of(goal, Y), goal, 0.01)[1]
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(few.values.values.T, full.weights.values, rtol=1e-3, atol=1e-4)
    assert torch.equal(few.top(h, 5)[0], full.top(h, 5)[0])


def test_a_wide_layer_in_front() -> None:
    values, index, bias, h, Y = problem(inputs=40)
    rng = np.random.default_rng(4)
    above = torch.tensor(rng.normal(size=(40, WIDTH)).astype(np.float32))
    layer = FanIn(values.clone(), index, bias.clone(), WIDTH, wide=(above.clone(), torch.zeros(40)))
    goal = named("squared_hinge", reduction="mean")
    w1, x = above.clone().requires_grad_(), h.clone().requires_grad_()
    z = torch.relu(x @ w1.T) @ scattered(values, index, 40).T + bias
    sign = 2 * torch.tensor(Y.toarray()) - 1
    (torch.relu(1 - sign * z) ** 2).mean().backward()
    _, gradient = layer.step(h, targets_of(goal, Y), goal, 0.01)
    torch.testing.assert_close(gradient, x.grad, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(layer.wide[0].first, 0.1 * w1.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_nothing(threads: int) -> None:
    values, index, bias, h, Y = problem()
    goal = named("sigmoid", reduction="sum")
    found = []
    for count in (1, threads):
        layer = FanIn(values.clone(), index, bias.clone(), WIDTH, threads=count)
        gradient = layer.step(h, targets_of(goal, Y), goal, 0.01)[1]
        found.append((gradient, layer.values.values))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("share", [0.1, None])
@pytest.mark.parametrize("keep", [False, True])
def test_the_smallest_weights_are_rewired(share: float | None, keep: bool) -> None:
    values, index, bias, h, Y = problem()
    rewiring = Rewiring(every=2, until=3, share=share, threshold=0.3, zero=not keep, seed=1)
    layer = FanIn(values.clone(), index.clone(), bias, WIDTH, rewiring=rewiring)
    goal = named("sigmoid", reduction="sum")
    layer.step(h, targets_of(goal, Y), goal, 1e-6)
    assert torch.equal(layer.index, index)  # not yet
    layer.step(h, targets_of(goal, Y), goal, 1e-6)
    first = layer.index.clone()
    layer.step(h, targets_of(goal, Y), goal, 1e-6)
    layer.step(h, targets_of(goal, Y), goal, 1e-6)
    assert torch.equal(layer.index, first)  # no more
    size = values.abs().flatten()
    count = int(0.1 * F * LABELS) if share else int((size < rewiring.bound(2)).sum())
    smallest = size.argsort()[:count]
    others = size.argsort()[count:]
    assert torch.equal(layer.index.flatten()[others], index.flatten()[others])
    changed = layer.index.flatten()[smallest].int() != index.flatten()[smallest].int()
    if count:
        assert float(changed.float().mean()) > 0.5  # one in WIDTH draws the input it had
    assert int(layer.index.int().max()) < WIDTH and layer.index.shape == index.shape
    if not keep:
        assert float(layer.values.values.flatten()[smallest].abs().sum()) < 1e-3


def test_moments_of_rewired_weights_begin_anew() -> None:
    values, index, bias, h, Y = problem()
    goal = named("sigmoid", reduction="sum")
    for reset in (True, False):
        rewiring = Rewiring(every=1, share=0.5, reset=reset)
        layer = FanIn(values.clone(), index.clone(), bias.clone(), WIDTH, rewiring=rewiring)
        layer.step(h, targets_of(goal, Y), goal, 1e-6)
        zero = int((layer.values.first == 0).sum())
        assert zero >= F * LABELS // 2 if reset else zero < F * LABELS // 4


def test_the_threshold_falls_along_half_a_cosine() -> None:
    rewiring = Rewiring(every=1, until=100, share=None, threshold=0.05)
    assert rewiring.bound(0) == pytest.approx(0.05)
    assert rewiring.bound(50) == pytest.approx((0.05 + 1e-4) / 2)
    assert rewiring.bound(100) == rewiring.bound(500) == pytest.approx(1e-4)


def test_memory_is_the_formula() -> None:
    assert memory_of(1000, 32, 768, training=False) == 1000 * 32 * (4 + 2)
    assert memory_of(1000, 32, 100_000) == 1000 * 32 * (4 + 4 + 8)
    values, index, bias, _, _ = problem()
    layer = FanIn(values, index, bias, WIDTH)
    held = layer.values, layer.index
    bytes_of = sum(a.nbytes for a in (held[0].values, held[0].first, held[0].second, held[1]))
    assert bytes_of == memory_of(LABELS, F, WIDTH)


def test_inputs_of_a_label_are_all_different_at_first() -> None:
    index = drawn_index(np.random.default_rng(0), 8, 500, 20)
    assert index.dtype == np.uint16 and index.max() < 20
    assert all(len(set(column)) == 8 for column in index.T)
    assert drawn_index(np.random.default_rng(0), 2, 5, 70_000).dtype == np.int32
    with pytest.raises(ValueError, match="fan_in is 30, but there are 20 inputs"):
        drawn_index(np.random.default_rng(0), 30, 5, 20)


def test_clusters_beside_a_layer() -> None:
    """The gradient of h is (1 - g) of the main loss and g of that of clusters, and g falls to 0."""
    values, index, bias, h, Y = problem()
    cluster_of = torch.arange(LABELS) // 10
    goal = named("sigmoid", reduction="sum")
    targets = targets_of(goal, Y)
    wanted = torch.zeros(ROWS, 7)
    for row, label in zip(*Y.nonzero(), strict=True):
        wanted[row, cluster_of[label]] = 1
    clusters = cluster_targets(targets, cluster_of)
    found = torch.zeros(ROWS, 7)
    columns, rows, ones = clusters.entries.by_column
    found[rows, columns] = ones
    assert torch.equal(found, wanted) and len(clusters) == ROWS

    head = Full(torch.full((7, WIDTH), 0.1), torch.zeros(7))
    main = FanIn(values.clone(), index, bias.clone(), WIDTH)
    both = Clustered(main, head, cluster_of, weight=0.4, until=2)
    alone = FanIn(values.clone(), index, bias.clone(), WIDTH)
    _, of_main = alone.step(h, targets, goal, 0.0)
    x = h.clone().requires_grad_()
    z = x @ torch.full((7, WIDTH), 0.1).T
    torch.nn.functional.binary_cross_entropy_with_logits(z, wanted).backward()
    _, gradient = both.step(h, targets, goal, 0.0)
    torch.testing.assert_close(gradient, 0.6 * of_main + 0.4 * x.grad, rtol=1e-4, atol=1e-6)
    assert [both.share(step) for step in (0, 1, 2, 9)] == pytest.approx([0.4, 0.2, 0, 0])
    both.step(h, targets, goal, 0.0)
    _, gradient = both.step(h, targets, goal, 0.0)
    torch.testing.assert_close(gradient, of_main, rtol=1e-4, atol=1e-6)
    other = Clustered(
        FanIn(torch.zeros_like(values), index.clone(), bias.clone(), WIDTH),
        Full(torch.zeros(7, WIDTH), torch.zeros(7)),
        cluster_of,
        weight=0.4,
        until=2,
    )
    other.load(both.arrays(), 3)
    assert torch.equal(other.main.values.values, main.values.values)
