"""Output layers on a GPU: time and memory of a step, and how far they are from their floors.

    python benchmarks/deep/output_layers.py [--quick] [--part check tune ...]

Every part prints JSON, one line per measurement, and a part that fails prints why and leaves the
others alone. Rows and labels are random: time depends on sizes, not on values.

check    kernels against the same arithmetic in tensor operations
tune     one kernel at a time, for several ways to cut its product into tiles, and the product
         alone as the library multiplies it
step     a step of the full layer, batch 1,024: 670,091 labels x 768 and 2,812,281 x 512
wide     the uncompressed network's 2,812,281 x 4,096, batch 2,000, and a step of MACH's network
encoder  an encoder of MiniLM's size and 2,812,281 labels, batch 128 of 128 tokens
huge     8.6 million labels x 768 in eight bits, with the GPU's memory capped at 16 GiB
fan_in   forward and backward of the fixed fan-in layer against the memory it must touch

The floor of a step is the larger of two times: three products (6 b e L operations) at the rate of a
large bfloat16 product measured in the same run, and the bytes of W read twice and written once at
the rate of a large copy. Times are medians; memory is ``torch.cuda.max_memory_reserved``.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail.deep.objectives import named
from longtail.deep.outputs import chunk_step
from longtail.deep.outputs.chunk_step import ChunkStep, Tiles
from longtail.deep.outputs.lean import Lean
from longtail.deep.outputs.rounding import decoded, nearest, raw_dtype
from longtail.deep.outputs.stored import Sgd, Stored, seed_of

GPU = torch.device("cuda")


def tell(part: str, **values: Any) -> None:
    for name, value in values.items():
        if isinstance(value, float):
            values[name] = float(f"{value:.5g}")
    print(json.dumps({"part": part, **values}), flush=True)


def milliseconds(work: Callable[[], Any], times: int = 7, warm: int = 2) -> float:
    """Return the median time of one call."""
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    found = []
    for _ in range(times):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end))
    return float(np.median(found))


def fresh() -> None:
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def reserved() -> float:
    return torch.cuda.max_memory_reserved() / 2**30


def measured_rates() -> tuple[float, float]:
    """Operations per second of a large bfloat16 product, bytes per second of a copy."""
    a = torch.randn(8192, 8192, device=GPU, dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device=GPU, dtype=torch.bfloat16)
    out = torch.empty_like(a)
    flops = 2 * 8192**3 / (milliseconds(lambda: torch.mm(a, b, out=out), 15, 5) / 1e3)
    big = torch.empty(1 << 30, device=GPU, dtype=torch.uint8)
    other = torch.empty_like(big)
    rate = 2 * big.nbytes / (milliseconds(lambda: other.copy_(big), 10) / 1e3)
    fresh()
    return flops, rate


def floor(rows: int, labels: int, width: int, size: int, rates: tuple[float, float]) -> float:
    """Milliseconds that a step takes at least."""
    return 1e3 * max(6 * rows * labels * width / rates[0], 3 * labels * width * size / rates[1])


def random_labels(rows: int, labels: int, each: int, seed: int = 0) -> sp.csr_matrix:
    rng = np.random.default_rng(seed)
    columns = (labels * rng.random(rows * each) ** 3).astype(np.int64)
    data = np.ones(rows * each, np.float32)
    out = sp.csr_matrix((data, columns, np.arange(rows + 1) * each), shape=(rows, labels))
    out.sum_duplicates()
    out.data[:] = 1
    return out


def random_raw(labels: int, width: int, precision: str) -> torch.Tensor:
    """Weights, drawn a slice at a time so that nothing else is as large."""
    out = torch.empty(labels, width, dtype=raw_dtype(precision), device=GPU)
    for begin in range(0, labels, 1 << 15):
        some = out[begin : begin + (1 << 15)]
        some.copy_(nearest(0.02 * torch.randn(some.shape, device=GPU), precision))
    return out


def batch_of(labels: int, rows: int, width: int, loss: str = "sigmoid") -> tuple[Any, Any, Any]:
    goal = named(loss, reduction="sum")
    targets = goal.rows(random_labels(rows, labels, 5), GPU, 0).take(torch.arange(rows).cuda())
    return goal, targets, torch.randn(rows, width, device=GPU)


def check(quick: bool, rates: tuple[float, float]) -> None:
    """Compare kernels with tensor operations on the same weights and random bits."""
    labels, width, rows = 3000, 256, 200
    torch.manual_seed(0)
    for precision in ("bfloat16", "float8"):
        for loss in ("sigmoid", "squared_hinge", "softmax"):
            for options in ({}, {"momentum": 0.9}, {"compensated": torch.arange(0, labels, 7)}):
                start = 0.3 * torch.randn(labels, width, device=GPU)
                bias = torch.randn(labels, device=GPU)
                goal, targets, h = batch_of(labels, rows, width, loss)
                sgd = Sgd(0.01, options.get("momentum", 0.0), 0.01)
                raw, whole = nearest(h, precision), slice(0, labels)
                x = decoded(raw)
                made = [
                    Stored(
                        start.clone(),
                        precision,
                        momentum="momentum" in options,
                        compensated=options.get("compensated"),
                    )
                    for _ in range(2)
                ]
                bound = goal.bind(targets, [0, labels])
                w = made[0].part(whole).clone()
                z = x @ w.T
                if bound.looks:
                    bound.settle([bound.look(z + bias, whole)])
                g = decoded(nearest(bound.gradient(z, bias, whole).float(), "bfloat16"))
                expected, seed = g @ w, seed_of(0, 1, 0)
                made[0].update(whole, g.T @ x, sgd, seed)
                step = ChunkStep(made[1], bias, raw, bound.pointwise(), sgd)
                found = step([seed])
                after = [m.part(whole) for m in made]
                away = (after[0] - after[1]).abs()
                moved = (after[0] - w).abs()
                tell(
                    "check",
                    precision=precision,
                    loss=loss,
                    option=",".join(options),
                    gradient_error=float((found - expected).abs().max() / expected.abs().max()),
                    weights_that_differ=float((away > 0).float().mean()),
                    mean_distance=float(away.mean() / moved.mean()),
                    ok=bool(
                        (found - expected).abs().max() < 0.02 * expected.abs().max()
                        and away.mean() < 0.02 * moved.mean()
                    ),
                )


TILES = {
    "scores": [
        Tiles(128, 128, 64, 4, 3, turns=2, split=True),
        Tiles(64, 256, 64, 4, 2, turns=2),
        Tiles(64, 256, 64, 4, 2),
        Tiles(64, 256, 32, 4, 4, turns=2),
        Tiles(128, 128, 32, 4, 4, turns=2),
        Tiles(128, 256, 64, 8, 3, turns=1),
        Tiles(64, 128, 64, 4, 3, turns=3),
    ],
    "inputs": [Tiles(0, 0, 0), Tiles(128, 256, 64, 8, 3), Tiles(256, 128, 64, 8, 3)],
    "update": [
        Tiles(128, 256, 64, 8, 3),
        Tiles(64, 256, 64, 4, 2),
        Tiles(64, 256, 64, 4, 2, turns=2),
        Tiles(64, 256, 32, 4, 4),
        Tiles(128, 128, 64, 4, 3, split=True),
        Tiles(128, 128, 32, 4, 4),
        Tiles(128, 256, 64, 8, 4, split=True),
    ],
}


def tune(quick: bool, rates: tuple[float, float]) -> None:
    """Time each kernel on one chunk, for several tiles."""
    for width in (512,) if quick else (512, 768):
        for precision in ("bfloat16", "float8"):
            tune_kernels(65_536, width, 1024, precision, rates)
            fresh()


def tune_kernels(
    labels: int, width: int, rows: int, precision: str, rates: tuple[float, float]
) -> None:
    """Time the kernels of one precision."""
    best = 1e3 * 2 * rows * labels * width / rates[0]
    raw = random_raw(labels, width, precision)
    goal, targets, h = batch_of(labels, rows, width)
    x_raw, bias = nearest(h, precision), torch.zeros(labels, device=GPU)
    bound = goal.bind(targets, [0, labels])
    about = {"width": width, "precision": precision, "floor_ms": best}
    if precision == "bfloat16":
        g = torch.randn(rows, labels, device=GPU).to(torch.bfloat16)
        w, x = raw.view(torch.bfloat16), x_raw.view(torch.bfloat16)
        products = {
            "scores": lambda x=x, w=w: x @ w.T,
            "inputs": lambda g=g, w=w: g @ w,
            "update": lambda g=g, x=x: g.T @ x,
        }
        for name, work in products.items():
            tell("tune", kernel=name, tiles="library alone", ms=milliseconds(work), **about)
    for name, choices in TILES.items():
        for cut in choices:
            if precision == "float8" and name == "scores":
                cut = Tiles(**{**vars(cut), "depth": 2 * cut.depth})
            place = ("scores", "inputs", "update").index(name)
            cuts = [chunk_step.SCORES, chunk_step.INPUTS, chunk_step.UPDATE]
            own = [c[16 if precision == "bfloat16" else 8] for c in cuts]
            own[place] = cut
            try:
                step = ChunkStep(
                    Stored(raw, precision),
                    bias,
                    x_raw,
                    bound.pointwise(),
                    Sgd(1e-3),
                    tuple(own),  # type: ignore[arg-type]
                )
                g = step.gradients[:, :labels]
                g.normal_()
                work = {
                    "scores": lambda s=step: s.score_gradients(0, labels),
                    "inputs": lambda s=step, g=g: s.input_gradient(g, 0, labels),
                    "update": lambda s=step, g=g: s.update(g, 0, labels, 1),
                }[name]
                tell("tune", kernel=name, tiles=str(cut), ms=milliseconds(work), **about)
            except Exception as error:
                tell("tune", kernel=name, tiles=str(cut), error=str(error)[:200], **about)


def full_step(
    part: str,
    labels: int,
    width: int,
    rows: int,
    precision: str,
    rates: tuple[float, float],
    **options: Any,
) -> None:
    fresh()
    size = {"bfloat16": 2, "float8": 1}[precision]
    goal, targets, h = batch_of(labels, rows, width)
    layer = Lean(
        random_raw(labels, width, precision),
        torch.full((labels,), -8.0, device=GPU),
        precision=precision,
        **options,
    )
    ms = milliseconds(lambda: layer.step(h, targets, goal, 1e-3))
    least = floor(rows, labels, width, 2, rates)
    weights = labels * width * size / 2**30
    tell(
        part,
        labels=labels,
        width=width,
        batch=rows,
        precision=precision,
        ms=ms,
        bf16_floor_ms=least,
        times_floor=ms / least,
        reserved_gib=reserved(),
        most_gib=1.1 * weights + 0.5,
        finite=layer.finite(),
    )


def step(quick: bool, rates: tuple[float, float]) -> None:
    for labels, width in ((670_091, 768), (2_812_281, 512)):
        for precision in ("bfloat16", "float8"):
            full_step("step", labels, width, 1024, precision, rates)


def wide(quick: bool, rates: tuple[float, float]) -> None:
    for precision in ("bfloat16", "float8"):
        full_step("wide", 2_812_281, 4096, 2000, precision, rates)
    from longtail.deep.outputs import Full

    goal, targets, h = batch_of(10_000, 2000, 4096)
    layer = Full(
        0.02 * torch.randn(10_000, 4096, device=GPU),
        torch.zeros(10_000, device=GPU),
        low_precision=True,
    )
    ms = milliseconds(lambda: layer.step(h, targets, goal, 1e-3))
    tell("wide", layer="MACH's, 10,000 x 4,096, Adam", ms=ms)


def small_encoder(width: int, layers: int) -> torch.nn.Module:
    """An encoder of the shape of MiniLM (384 wide) or BERT (768), with random weights."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=4 * width,
    )
    return BertModel(config, add_pooling_layer=False).to(GPU)


def encoded_step(
    part: str,
    labels: int,
    width: int,
    layers: int,
    rows: int,
    tokens: int,
    precision: str,
    **about: Any,
) -> None:
    fresh()
    encoder = small_encoder(width, layers).train()
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=1e-5, fused=True)
    ids = torch.randint(0, 30_000, (rows, tokens), device=GPU)
    layer = Lean(
        random_raw(labels, width, precision),
        torch.full((labels,), -8.0, device=GPU),
        precision=precision,
    )
    goal, targets, _ = batch_of(labels, rows, width)

    def one() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            vectors = encoder(input_ids=ids).last_hidden_state.mean(1).float()
        _, gradient = layer.step(vectors.detach(), targets, goal, 1e-3)
        vectors.backward(gradient)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    ms = milliseconds(one)
    tell(
        part,
        labels=labels,
        width=width,
        batch=rows,
        tokens=tokens,
        precision=precision,
        ms=ms,
        reserved_gib=reserved(),
        finite=layer.finite(),
        **about,
    )


def encoder(quick: bool, rates: tuple[float, float]) -> None:
    for precision, most in (("bfloat16", 6), ("float8", 4)):
        encoded_step("encoder", 2_812_281, 384, 6, 128, 128, precision, most_gib=most)


def huge(quick: bool, rates: tuple[float, float]) -> None:
    whole = torch.cuda.get_device_properties(GPU).total_memory
    torch.cuda.set_per_process_memory_fraction(16 * 2**30 / whole)
    try:
        encoded_step("huge", 8_600_000, 768, 12, 128, 128, "float8", most_gib=16)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def fan_in(quick: bool, rates: tuple[float, float]) -> None:
    """Time forward and backward; bytes: values, index, scores, and every input that is gathered."""
    for f in (32, 64):
        fresh()
        fan_in_of(f, rates)


def fan_in_of(f: int, rates: tuple[float, float]) -> None:
    from longtail.deep.outputs import FanIn

    labels, width, rows = 670_091, 768, 128
    rng = np.random.default_rng(0)
    index = torch.tensor(rng.integers(0, width, (f, labels)).astype(np.uint16)).to(GPU)
    layer = FanIn(torch.randn(f, labels, device=GPU), index, torch.zeros(labels, device=GPU), width)
    a, whole = torch.randn(rows, width, device=GPU), slice(0, labels)
    forward = milliseconds(lambda: layer._products(a, whole))
    weights = f * labels * 6
    gathered = 4 * rows * f * labels
    for kept in (1.0, 0.01):
        g = torch.randn(rows, labels, device=GPU)
        g *= torch.rand(rows, labels, device=GPU) < kept
        through = torch.zeros_like(a)
        backward = milliseconds(lambda g=g, t=through: layer._back(a, g, whole, t))
        one_way = 1e3 * (weights + 4 * rows * labels + gathered) / rates[1]
        back = 1e3 * (weights + 4 * f * labels + 4 * rows * labels + 2 * kept * gathered)
        tell(
            "fan_in",
            labels=labels,
            inputs=width,
            f=f,
            batch=rows,
            gradients_not_zero=kept,
            forward_ms=forward,
            forward_floor_ms=one_way,
            backward_ms=backward,
            backward_floor_ms=back / rates[1],
            weights_only_ms=1e3 * weights / rates[1],
            reserved_gib=reserved(),
        )
    goal, targets, h = batch_of(labels, rows, width, "squared_hinge")
    ms = milliseconds(lambda: layer.step(h, targets, goal, 1e-3), 3, 1)
    tell("fan_in", step_ms=ms, f=f, reserved_gib=reserved())


PARTS = {f.__name__: f for f in (check, tune, step, wide, encoder, huge, fan_in)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    args = parser.parse_args()
    rates = measured_rates()
    tell(
        "machine",
        device=torch.cuda.get_device_name(),
        torch=torch.__version__,
        tflops=rates[0] / 1e12,
        terabytes_per_second=rates[1] / 1e12,
    )
    for name in args.part:
        began = time.perf_counter()
        try:
            PARTS[name](args.quick, rates)
        except Exception:
            tell(name, error=traceback.format_exc()[-1500:])
        fresh()
        tell(name, seconds=time.perf_counter() - began)


if __name__ == "__main__":
    main()
