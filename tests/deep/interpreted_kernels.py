"""Run by tests: Triton kernels, interpreted on a CPU, against the same in tensor operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import triton.language as tl
from triton.runtime import interpreter

from longtail.deep.objectives import named
from longtail.deep.outputs import FanIn, Lean, chunk_step
from longtail.deep.outputs.chunk_step import ChunkStep, Tiles
from longtail.deep.outputs.fan_in_gpu import gradients, scores
from longtail.deep.outputs.rounding import decoded, nearest
from longtail.deep.outputs.stored import Sgd, seed_of

CPU = torch.device("cpu")
KINDS = {"bf16": torch.bfloat16, "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}


def teach_the_interpreter() -> None:
    """It multiplies bfloat16 as whole numbers, and cuts floats off where hardware rounds them."""

    def numbers(handle: Any) -> np.ndarray:
        kind = KINDS.get(str(handle.dtype.scalar))
        if kind is None:
            return handle.data
        return torch.from_numpy(np.ascontiguousarray(handle.data)).view(kind).float().numpy()

    def create_dot(self: Any, a: Any, b: Any, d: Any, *_: Any) -> Any:
        product = np.matmul(numbers(a), numbers(b)) + d.data
        return interpreter.TensorHandle(product, d.dtype.scalar)

    before = interpreter._convert_float

    def convert(data: np.ndarray, source: Any, to: Any, mode: Any) -> np.ndarray:
        kind = KINDS.get(str(to.scalar))
        if source.scalar != tl.float32 or kind is None:
            return before(data, source, to, mode)
        made = torch.from_numpy(np.ascontiguousarray(data).view(np.float32)).to(kind)
        raw = torch.uint16 if kind == torch.bfloat16 else torch.uint8
        return made.view(raw).numpy().reshape(data.shape)

    interpreter.InterpreterBuilder.create_dot = create_dot
    interpreter._convert_float = convert


def full_layers() -> None:
    rows, labels, width = 20, 150, 32
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    Y = sp.csr_matrix((rng.random((rows, labels)) < 0.1).astype(np.float32))
    chunk_step._ALIGNED, chunk_step.GRADIENTS = 16, 64 * rows  # several chunks
    whole = slice(0, labels)
    plain = (Tiles(16, 32, 16), Tiles(16, 32, 16), Tiles(16, 32, 16))
    turned = (
        Tiles(16, 32, 16, turns=1, split=True),
        Tiles(16, 32, 16),
        Tiles(32, 16, 16, turns=1, split=True),
    )
    cases = [
        ("bfloat16", "sigmoid", {}, plain),
        ("bfloat16", "squared_hinge", {"momentum": 0.9}, turned),
        ("bfloat16", "softmax", {"compensated": torch.arange(0, labels, 3)}, turned),
        ("float8", "sigmoid", {"compensated": torch.arange(0, labels, 3)}, plain),
        ("float8", "softmax", {"momentum": 0.9}, plain),
    ]
    for precision, loss, options, tiles in cases:
        goal = named(loss, reduction="sum")
        w, bias, h = torch.randn(labels, width) * 0.3, torch.randn(labels), torch.randn(rows, width)
        targets = goal.rows(Y, CPU, 0).take(torch.arange(rows))
        bound = goal.bind(targets, [0, labels])
        one, other = (
            Lean(w.clone(), bias, precision=precision, weight_decay=0.01, **options)
            for _ in range(2)
        )
        raw = nearest(h, precision)
        if bound.looks:
            x = decoded(raw)
            bound.settle([bound.look(one._products(x, whole) + bias, whole)])
        sgd = Sgd(0.05, options.get("momentum", 0.0), 0.01)
        step = ChunkStep(one.weights, bias, raw, bound.pointwise(), sgd, tiles)
        seeds = [seed_of(0, 1, begin) for begin in step.edges[:-1]]
        assert len(seeds) > 1
        found = step(seeds)
        x, before = decoded(raw), other.weights.part(whole).clone()
        g = bound.gradient(x @ before.T, bias, whole)
        g = decoded(nearest(g, "bfloat16"))
        expected = g @ before
        for begin, end, seed in zip(step.edges[:-1], step.edges[1:], seeds, strict=True):
            part = slice(begin, end)
            other.weights.update(part, g[:, part].T @ x, sgd, seed)
        scale = float(expected.abs().max())
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-3 * scale)
        for name, array in other.weights.arrays().items():
            same = (one.weights.arrays()[name] == array).float().mean()
            close = array.is_floating_point() and torch.allclose(
                one.weights.arrays()[name], array, rtol=1e-3, atol=1e-3
            )
            assert close or float(same) > 0.98, (precision, loss, name, float(same))


def widened_weights() -> None:
    """Every E4M3 number, and weights of a layer, as bfloat16."""
    raw = torch.tensor([code for code in range(256) if code & 0x7F != 0x7F], dtype=torch.uint8)
    out = torch.empty(len(raw), dtype=torch.bfloat16)
    chunk_step._kernels().widened[(1,)](raw, out, len(raw), BLOCK=256)
    assert torch.equal(out.float(), decoded(raw))


def few_weights() -> None:
    rng = np.random.default_rng(1)
    f, labels, inputs, rows = 5, 70, 24, 33
    for kind in (np.uint16, np.int32):
        index = torch.tensor(rng.integers(0, inputs, (f, labels)).astype(kind))
        values = torch.tensor(rng.normal(size=(f, labels)).astype(np.float32))
        layer = FanIn(values, index, torch.zeros(labels), inputs)
        a = torch.tensor(rng.normal(size=(rows, inputs)).astype(np.float32))
        part = slice(16, 70)
        torch.testing.assert_close(
            scores(a, values, index, part), layer._products(a, part), rtol=1e-4, atol=1e-5
        )
        g = torch.tensor(rng.normal(size=(rows, 54)).astype(np.float32))
        g[:, ::2] = 0
        one, other = torch.zeros_like(a), torch.zeros_like(a)
        torch.testing.assert_close(
            gradients(a, g, values, index, part, one),
            layer._back(a, g, part, other),
            rtol=1e-4,
            atol=1e-5,
        )
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    teach_the_interpreter()
    full_layers()
    widened_weights()
    few_weights()
