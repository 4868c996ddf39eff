"""One step: gradients against autograd for every objective, pruning, pools, pieces."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="torch is not installed")

from deep_cases import one_step  # noqa: E402

from longtail import losses  # noqa: E402
from longtail.deep.batches.pairs import PoolTargets  # noqa: E402
from longtail.deep.objectives import Binary, Softmax, named  # noqa: E402
from longtail.deep.outputs import Full, Pool  # noqa: E402


def problem(outputs: int = 50, seed: int = 0) -> tuple[Any, ...]:
    """A random perceptron of more outputs than a chunk has, or fewer, and a batch for it."""
    rng = np.random.default_rng(seed)
    X = sp.random(9, 30, 0.3, random_state=seed, dtype=np.float32).toarray()
    X[4] = 0  # a row without features
    Y = (rng.random((9, outputs)) < 0.1).astype(np.float32)
    Y[:, 0] = 1
    shapes = ((30, 8), (8,), (outputs, 8), (outputs,))
    spreads = (0.5, 0.1, 0.5, 0.1)
    weights = [
        torch.tensor(rng.normal(0, spread, shape).astype(np.float32))
        for shape, spread in zip(shapes, spreads, strict=True)
    ]
    return X, Y, weights


def reference(loss: str, z: Any, y: Any) -> Any:
    """The losses as torch has them, summed."""
    functional = torch.nn.functional
    if loss == "sigmoid":
        return functional.binary_cross_entropy_with_logits(z, y, reduction="sum")
    if loss == "softmax":
        return functional.cross_entropy(z, y / y.sum(1, keepdim=True), reduction="sum")
    if loss == "squared_hinge":
        return (torch.relu(1 - (2 * y - 1) * z) ** 2).sum()
    if loss == "hinge":
        return torch.relu(1 - (2 * y - 1) * z).sum()
    if loss == "squared_error":
        return ((z - y) ** 2).sum()
    return 0.5 * ((z - y) ** 2).sum() if loss == "squared" else (z - y).norm(dim=1).sum()


LOSSES = ["sigmoid", "softmax", "squared_hinge", "hinge", "squared_error", "squared", "length"]


@pytest.mark.parametrize("outputs", [50, 1100])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_is_adam_on_the_gradient_of_autograd(loss: str, outputs: int) -> None:
    X, Y, weights = problem(outputs)
    p = dict(zip(("w1", "b1", "w2", "b2"), weights, strict=True))
    p = {name: w.clone().requires_grad_() for name, w in p.items()}
    z = torch.relu(torch.tensor(X) @ p["w1"] + p["b1"]) @ p["w2"].T + p["b2"]
    value = reference(loss, z, torch.tensor(Y)) / 9
    value.backward()
    torch.optim.Adam(p.values(), lr=0.01).step()
    used = np.flatnonzero(X.any(axis=0))
    found, first, told = one_step(X, Y, weights, loss)
    torch.testing.assert_close(told, value.detach(), rtol=1e-5, atol=1e-5)
    for name, expected in p.items():
        some = used if name == "w1" else slice(None)  # absent features are left alone
        gradient = expected.grad.numpy()
        np.testing.assert_allclose(
            first[name].numpy(), 0.1 * gradient, rtol=1e-5, atol=1e-6, err_msg=name
        )
        # Adam's first step is the sign of the gradient: compare where that is clear.
        clear = np.abs(gradient[some]) > 1e-6
        np.testing.assert_allclose(
            found[name].numpy()[some][clear],
            expected.detach().numpy()[some][clear],
            atol=2e-5,
            err_msg=name,
        )


CORRECTED = [
    ("sigmoid", "unbiased", losses.OVA()),
    ("sigmoid", "normalized", losses.OVAN()),
    ("sigmoid", "surrogate", losses.Surrogate(mean_one=True)),
    ("squared_hinge", "surrogate", losses.Surrogate("squared_hinge", mean_one=True)),
    ("squared_hinge", "unbiased", losses.OVA("squared_hinge")),
    ("sigmoid", "pal", losses.PAL("logistic")),
    ("hinge", "pal-n", losses.PALN("hinge")),
    ("softmax", "pal", losses.PAL()),
    ("softmax", "pal-n", losses.PALN()),
]


@pytest.mark.parametrize(("loss", "correction", "twin"), CORRECTED, ids=str)
@pytest.mark.parametrize("outputs", [50, 600])
def test_corrections_are_those_of_longtail_losses(
    loss: str, correction: str, twin: Any, outputs: int
) -> None:
    """Value and gradient, entry by entry, through chunks of labels."""
    rng = np.random.default_rng(1)
    Y = sp.csr_matrix((rng.random((7, outputs)) < 0.05).astype(np.float32))
    Y = sp.csr_matrix(Y.multiply(rng.choice([0.5, 1.0], Y.shape)).astype(np.float32))
    scores = rng.normal(0, 2, (7, outputs))
    p = rng.uniform(0.2, 1, outputs)
    expected = twin(scores, Y, p)
    goal = named(loss, correction=correction, propensity=p, reduction="sum")
    value, gradient = through_chunks(goal, Y, scores)
    np.testing.assert_allclose(value, expected.value.sum(), rtol=1e-4)
    np.testing.assert_allclose(gradient, expected.gradient, rtol=1e-4, atol=1e-4)


def through_chunks(goal: Any, Y: Any, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Loss and gradient by scores, from a layer whose products are the scores."""
    from longtail.deep.outputs.chunks import chunk_edges

    cpu = torch.device("cpu")
    z = torch.tensor(scores, dtype=torch.float32)
    bounds = chunk_edges(len(z), z.shape[1], cpu)
    bound = goal.bind(goal.rows(Y, cpu, 0).take(torch.arange(len(z))), bounds)
    parts = [slice(*edge) for edge in pairwise(bounds)]
    if bound.looks:
        bound.settle(bound.look(z[:, part], part) for part in parts)
    value = sum(float(bound.value(z[:, part], part)) for part in parts)
    zero = torch.zeros(z.shape[1])
    gradient = [bound.gradient(z[:, part], zero[part], part) for part in parts]
    return value, torch.cat(gradient, dim=1).numpy()


def test_one_label_drawn_anew_in_every_epoch() -> None:
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix((rng.random((40, 30)) < 0.2).astype(np.float32))
    goal = named("softmax", correction="pol", propensity=np.full(30, 0.5), seed=3)
    assert goal.changes
    cpu = torch.device("cpu")
    drawn = [goal.rows(Y, cpu, epoch).rows.values.numpy() for epoch in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    ends = np.diff(Y.indptr) > 0
    picked = np.add.reduceat((drawn[0] > 0).astype(int), Y.indptr[:-1][ends])
    assert (picked == 1).all()


def test_rows_without_labels_teach_a_softmax_nothing() -> None:
    Y = sp.csr_matrix((3, 20), dtype=np.float32)
    value, gradient = through_chunks(Softmax(), Y, np.random.default_rng(0).normal(size=(3, 20)))
    assert value == 0 and not gradient.any()


@pytest.mark.parametrize("reduction", ["rows", "sum", "mean"])
@pytest.mark.parametrize("base", ["logistic", "squared_hinge"])
def test_reductions(reduction: str, base: str) -> None:
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix((rng.random((4, 300)) < 0.1).astype(np.float32))
    scores = rng.normal(size=(4, 300))
    total, gradient = through_chunks(Binary(base=base, reduction="sum"), Y, scores)
    divisor = {"rows": 4, "sum": 1, "mean": 1200}[reduction]
    value, found = through_chunks(Binary(base=base, reduction=reduction), Y, scores)
    np.testing.assert_allclose(value, total / divisor, rtol=1e-5)
    np.testing.assert_allclose(found, gradient / divisor, rtol=1e-5, atol=1e-8)


def test_pruned_weights_get_no_update() -> None:
    X, Y, weights = problem()
    after_one, _, _ = one_step(X, Y, weights, "sigmoid", pruned_to=100)
    gone = {name: (after_one[name] == 0).numpy() for name in ("w1", "w2")}
    assert sum((~mask).sum() for mask in gone.values()) == 100
    values, first, _ = one_step(X, Y, weights, "sigmoid", pruned_to=100, steps=4)
    for name, mask in gone.items():
        assert (values[name].numpy()[mask] == 0).all()
        assert (first[name].numpy()[mask] == 0).all()


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("goal", [Binary(base="squared_hinge"), Binary(), Softmax()], ids=repr)
def test_a_pool_updates_the_rows_it_names(goal: Any, per_row: bool) -> None:
    """Against autograd on the named labels; every other row keeps weights and moments."""
    rng = np.random.default_rng(0)
    h = torch.tensor(rng.normal(size=(5, 6)).astype(np.float32), requires_grad=True)
    weights = torch.tensor(rng.normal(size=(40, 6)).astype(np.float32))
    bias = torch.tensor(rng.normal(size=40).astype(np.float32))
    labels = torch.tensor([3, 9, 4, 30])
    if per_row:
        labels = torch.tensor(
            [[3, 9, 4, 30], [1, 2, 3, -1], [9, 30, -1, -1], [7, 8, 9, 4], [3] * 4]
        )
        labels[4, 1:] = torch.tensor([5, 6, -1])
    targets = torch.zeros(5, 4)
    targets[:, 0] = 1
    cost = torch.tensor(rng.uniform(0.5, 2, (5, 4)).astype(np.float32))
    pool = Pool(weights.clone(), bias.clone())
    batch = PoolTargets(labels, targets, cost)
    loss, gradient = pool.step(h.detach(), batch, goal, 0.01, want_loss=True)

    w, b = weights.clone().requires_grad_(), bias.clone().requires_grad_()
    at = labels.clamp(min=0)
    z = h @ w[at].T + b[at] if not per_row else (w[at] * h[:, None]).sum(2) + b[at]
    present = batch.present
    if isinstance(goal, Softmax):
        share = targets * cost * present
        share = share / share.sum(1, keepdim=True)
        log_p = torch.log_softmax(z.masked_fill(~present, -torch.inf), 1)
        value = -(share * log_p.masked_fill(~present, 0)).sum() / 5
    else:
        sign = 2 * targets - 1
        each = torch.relu(1 - sign * z) ** 2
        if goal.base == "logistic":
            each = torch.nn.functional.softplus(-sign * z)
        value = (each * cost * present).sum() / 5
    value.backward()
    torch.testing.assert_close(loss, value.detach())
    torch.testing.assert_close(gradient, h.grad, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(pool.weights.first, 0.1 * w.grad, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(pool.bias.first, 0.1 * b.grad, rtol=1e-4, atol=1e-6)
    untouched = np.setdiff1d(np.arange(40), labels.numpy())
    assert torch.equal(pool.weights.values[untouched], weights[untouched])


@pytest.mark.parametrize("layer", [Full, Pool])
def test_top_of_a_layer_is_exact(layer: Any) -> None:
    rng = np.random.default_rng(0)
    weights = torch.tensor(rng.integers(-3, 4, (700, 5)).astype(np.float32))  # many equal scores
    out = layer(weights, torch.zeros(700))
    h = torch.tensor(rng.integers(-3, 4, (20, 5)).astype(np.float32))
    z = (h @ weights.T).numpy()
    order = np.lexsort((np.broadcast_to(np.arange(700), z.shape), -z), axis=1)[:, :7]
    ids, scores = out.top(h, 7)
    np.testing.assert_array_equal(scores.numpy(), np.take_along_axis(z, order, 1))
    far = np.take_along_axis(z, order, 1)
    clear = far[:, :-1] > far[:, -1:]  # ties at the last place may go either way in a chunk
    np.testing.assert_array_equal(ids.numpy()[:, :-1][clear], order[:, :-1][clear])
