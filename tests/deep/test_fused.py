"""Kernels of a training step against the same as tensor operations; needs a GPU."""

import pytest

torch = pytest.importorskip("torch")

from deep_cases import one_step  # noqa: E402

from longtail.deep.adam import Adam, AdamArray  # noqa: E402
from longtail.deep.fused import fused_adam, logit_gradient, sum_rows  # noqa: E402


def test_no_kernel_on_a_cpu():
    arrays = tuple(torch.zeros(3, 2) for _ in range(3))
    options = {"rate": 0.1, "decay": 1.0, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    assert not fused_adam(arrays, torch.ones(3, 2), **options)
    assert not arrays[0].any()


@pytest.mark.parametrize("width", [1, 50, 256, 4096])
@pytest.mark.parametrize("some_rows", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_same_as_tensor_operations(width, some_rows, masked, dtype):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    draw = torch.Generator().manual_seed(0)
    n = 40
    rows = torch.randperm(n, generator=draw)[:15] if some_rows else None
    mask = torch.rand(n, width, generator=draw) < 0.5 if masked else None
    begin = [torch.randn(n, width, generator=draw) for _ in range(3)]
    begin[2] = begin[2] ** 2
    if masked:
        begin = [array * mask for array in begin]
    gradient = torch.randn(n if rows is None else 15, width, generator=draw).to(dtype)
    results = []
    for device in ("cpu", "cuda"):
        w, first, second = (array.clone().to(device) for array in begin)
        array = AdamArray(w, first, second, None if mask is None else mask.to(device))
        array.update(
            gradient.to(device),
            Adam(1e-2, weight_decay=0.3),
            7,
            rows=None if rows is None else rows.to(device),
        )
        results.append([w.cpu(), first.cpu(), second.cpu()])
    for plain, fused in zip(*results, strict=True):
        torch.testing.assert_close(fused, plain, rtol=2e-6, atol=2e-7)
    if masked:
        assert not results[1][0][~mask].any()


@pytest.mark.parametrize("width", [1, 50, 4096])
def test_sums_of_rows(width):
    draw = torch.Generator().manual_seed(1)
    matrix = torch.randn(30, width, generator=draw)
    index = torch.randint(0, 30, (100,), generator=draw)
    values = torch.randn(100, generator=draw)
    offsets = torch.tensor([0, 0, 10, 60, 100, 100])  # empty ones first, in the middle and last
    assert sum_rows(matrix, index, offsets, values) is None  # no kernel on a CPU
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    found = sum_rows(*(array.cuda() for array in (matrix, index, offsets, values)))
    ends = [*offsets[1:].tolist(), 100]
    for i, (begin, end) in enumerate(zip(offsets.tolist(), ends, strict=True)):
        expected = values[begin:end] @ matrix[index[begin:end]]
        torch.testing.assert_close(found[i].cpu(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", [1, 50, 4096])
@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_by_logits(width, softmax, dtype):
    draw = torch.Generator().manual_seed(2)
    products = (10 * torch.randn(7, width, generator=draw)).to(dtype)
    bias = torch.randn(width, generator=draw)
    z = products.float() + bias
    norm = torch.logsumexp(z, dim=1, keepdim=True) if softmax else None
    assert logit_gradient(products, bias, norm, 0.5) is None  # no kernel on a CPU
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    found = logit_gradient(products.cuda(), bias.cuda(), norm.cuda() if softmax else None, 0.5)
    expected = 0.5 * (torch.exp(z - norm) if softmax else torch.sigmoid(z))
    assert found.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(found.cpu().float(), expected, rtol=tolerance, atol=1e-7)


@pytest.mark.parametrize("loss", ["sigmoid", "softmax", "squared", "length"])
@pytest.mark.parametrize("outputs", [5, 64, 20_003])
def test_a_step_is_the_same_on_both_devices(loss, outputs):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    draw = torch.Generator().manual_seed(3)
    X = torch.rand(2000, 40, generator=draw) * (torch.rand(2000, 40, generator=draw) < 0.2)
    Y = (torch.rand(2000, outputs, generator=draw) < 3 / outputs).float()
    weights = (
        torch.randn(40, 16, generator=draw),
        torch.zeros(16),
        0.1 * torch.randn(outputs, 16, generator=draw),
        torch.zeros(outputs),
    )
    plain, fused = (
        one_step(X.numpy(), Y.numpy(), weights, loss, device=device)[1]
        for device in ("cpu", "cuda")
    )
    for name, first in plain.items():
        scale = float(first.abs().max())
        torch.testing.assert_close(fused[name], first, rtol=1e-3, atol=1e-4 * scale)
