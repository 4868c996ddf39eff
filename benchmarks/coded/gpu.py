"""Steps of MACH, DECLARE and the whole network on a GPU, and how far they are from the roofline.

    python benchmarks/coded/gpu.py [--quick] [--device cuda] [--profile]

Random rows stand in for the data: time depends on sizes, not on values.

* MACH with B = 10,000 and R = 16 (Amazon-3M's reference: hidden 4,096, features hashed to 100,000,
  batch 2,000, 76 features a row) against the uncompressed network with 2,812,281 outputs.
* DECLARE with c = 50 at the size of Delicious-200K (196,606 rows, 782,585 features, 205,443 labels,
  302 features and 75 labels a row; hidden 256, batch 128) against the uncompressed network.

For each: milliseconds per step, seconds per epoch, peak memory, and the share of the time that the
floor of the step would take. The floor is the larger of two times: three products of the output
layer (6 b h L operations) at the speed of a large product measured here, and the traffic of its
weights and moments (w, m and v read and written, the gradient written and read) at the measured
bandwidth of a copy, with those of the rows of the first layer that the batch touches. ``--profile``
also prints which kernels the time of MACH's step goes to.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail.deep.batches.sparse_rows import SparseRows
from longtail.deep.encoders.bag import Bag
from longtail.deep.objectives import named
from longtail.deep.optimisers import LazyAdam
from longtail.deep.outputs import Full


def random_rows(rng: np.random.Generator, n: int, width: int, per_row: int) -> sp.csr_matrix:
    columns = np.sort((width * rng.random((n, per_row)) ** 2).astype(np.int64), axis=1)
    values = np.full(n * per_row, per_row**-0.5, np.float32)
    indptr = np.arange(n + 1) * per_row
    out = sp.csr_matrix((values, columns.ravel(), indptr), shape=(n, width))
    out.sum_duplicates()
    return out


def measured_roof(device: torch.device, quick: bool) -> tuple[float, float]:
    """Operations per second of a large product, bytes per second of a copy."""
    size = 1024 if quick else 8192
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    a = torch.randn(size, size, device=device, dtype=kind)
    flops = 2 * size**3 / seconds_of(lambda: a @ a, device, 10)
    big = torch.empty(1 << (22 if quick else 28), device=device)
    other = torch.empty_like(big)
    bandwidth = 2 * big.nbytes / seconds_of(lambda: other.copy_(big), device, 10)
    return flops, bandwidth


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds_of(work: Any, device: torch.device, times: int) -> float:
    for _ in range(3):
        work()
    synchronize(device)
    began = time.perf_counter()
    for _ in range(times):
        work()
    synchronize(device)
    return (time.perf_counter() - began) / times


def make_network(d: int, h: int, outputs: int, device: torch.device) -> tuple[Bag, Full]:
    encoder = Bag(torch.empty(d, h, device=device).normal_(0, 0.1), torch.zeros(h, device=device))
    output = Full(
        torch.empty(outputs, h, device=device).normal_(0, 0.01),
        torch.full((outputs,), -8.0, device=device),
        low_precision=device.type == "cuda",
    )
    return encoder, output


def print_profile(step: Any) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
    print(found.key_averages().table(sort_by="cuda_time_total", row_limit=18))


def measure(
    title: str,
    shape: tuple[int, int, int],  # features, hidden, outputs
    counts: tuple[int, int, int, int],  # rows of an epoch, per batch, features and labels per row
    loss: str,
    roof: tuple[float, float],
    device: torch.device,
    networks: int = 1,
    steps: int = 20,
    profile: bool = False,
) -> None:
    d, h, outputs = shape
    n, batch_size, per_row, labels_per_row = counts
    rng = np.random.default_rng(0)
    held = 64 * batch_size
    try:
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        X = SparseRows(random_rows(rng, held, d, per_row), device)
        wanted: Any
        if loss == "squared":
            wanted = rng.standard_normal((held, outputs), np.float32)
        else:
            wanted = random_rows(rng, held, outputs, labels_per_row)
            wanted.data[:] = 1.0
        objective = named(loss)
        targets = objective.rows(wanted, device, 0)
        encoder, output = make_network(d, h, outputs, device)
        optimiser = LazyAdam(encoder, 0.0)
        rows = torch.arange(held, device=device)

        def batches() -> Iterator[tuple[Any, Any]]:
            while True:
                pairs = X.batches(rows, batch_size), targets.batches(rows, batch_size)
                yield from zip(*pairs, strict=True)

        epochs = batches()

        def step() -> None:
            batch, labels = next(epochs)
            vectors = encoder(batch)
            _, gradient = output.step(vectors.detach(), labels, objective, 1e-3)
            vectors.backward(gradient)
            optimiser.step(1e-3)

        each = seconds_of(step, device, steps)
        if profile:
            print_profile(step)
    except torch.cuda.OutOfMemoryError:
        needed = (d * h + outputs * h) * 12 / 2**30
        print(f"| {title} | does not fit: weights and moments alone {needed:.0f} GiB | | | |")
        return
    peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    flops, bandwidth = roof
    products = 6 * batch_size * h * outputs / flops
    touched = np.mean([len(batch.unique) for batch in X.batches(rows, batch_size)])
    traffic = 4 * h * (8 * outputs + 7 * touched) / bandwidth
    floor = max(products, traffic)
    epoch = networks * each * n / batch_size
    bound = "products" if products > traffic else "traffic"
    print(
        f"| {title} | {1e3 * each:.2f} | {epoch:.1f} | {peak:.1f} | "
        f"{1e3 * floor:.2f} ({bound}), {floor / each:.0%} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    device = torch.device(args.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, python {sys.version.split()[0]}")
    print("command:", *sys.argv, "seed: 0")
    roof = measured_roof(device, args.quick)
    print(f"measured roof: {roof[0] / 1e12:.0f} TFLOP/s, {roof[1] / 1e12:.2f} TB/s\n")
    print("| model | ms per step | s per epoch | peak GiB | floor of the step, ms, and its share |")
    print("|---|---:|---:|---:|---:|")
    shrink = 100 if args.quick else 1
    amazon = (1_717_899 // shrink, 2_000 // min(shrink, 10), 76, 36)
    delicious = (196_606 // shrink, 128, 302, 75)
    hidden = 4096 // shrink
    measure(
        "MACH, B = 10,000, R = 16 (step of one repetition, epoch of all)",
        (100_000 // shrink, hidden, 10_000 // shrink),
        amazon,
        "sigmoid",
        roof,
        device,
        networks=16,
        profile=args.profile,
    )
    measure(
        "uncompressed, 2.8 million labels",
        (100_000 // shrink, hidden, 2_812_281 // shrink),
        amazon,
        "sigmoid",
        roof,
        device,
        steps=3,
    )
    delicious_features = 782_585 // shrink
    measure(
        "DECLARE, c = 50, Delicious-200K",
        (delicious_features, 256, 50),
        delicious,
        "squared",
        roof,
        device,
        steps=100,
    )
    measure(
        "uncompressed, Delicious-200K",
        (delicious_features, 256, 205_443 // shrink),
        delicious,
        "sigmoid",
        roof,
        device,
    )


if __name__ == "__main__":
    main()
