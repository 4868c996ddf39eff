"""What the training of a network will take: memory by part, time per epoch, and which output layer
fits a limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail.deep.objectives import named
from longtail.deep.output_plan import OutputPlan
from longtail.deep.outputs.chosen import chosen_layer, drawn_outputs
from longtail.deep.outputs.chunk_step import chunk_edges
from longtail.deep.training.cost import Cost
from longtail.deep.training.plan import Plan

__all__ = ["output_cost", "timed"]

_BYTES = {"float32": 4, "bfloat16": 2, "float8": 1}
_MEASURED = 20_000  # labels of the step that is timed
_FEW = 4096  # labels of a chunk of a fan-in layer


def output_cost(
    outputs: OutputPlan,
    plan: Plan,
    *,
    n_rows: int,
    n_labels: int,
    width: int,
    encoder: int,
    encoder_seconds: float = 0.0,
    memory_limit: int | None = None,
) -> Cost:
    """Return the cost of training an encoder of so many bytes (gradients and moments included) and
    seconds per batch, and an output layer on vectors of a ``width``, which is measured here.
    """
    steps = -(-n_rows // plan.batch_size)
    plain = replace(OutputPlan(), reduction=outputs.reduction)
    sgd = replace(plain, optimiser="sgd")
    choices = {
        "float32, Adam": plain,
        "float32, SGD": sgd,
        "bfloat16": replace(sgd, precision="bfloat16"),
        "float8": replace(sgd, precision="float8"),
    }
    if outputs.fan_in is not None:
        choices[f"fan_in={outputs.fan_in}"] = outputs
    before = {"encoder and its optimiser": encoder}
    return Cost(
        plan.device,
        {**before, **layer_memory(outputs, plan, n_labels, width)},
        {
            "encoder": steps * encoder_seconds,
            "output layer": steps * _step_seconds(outputs, plan, n_labels, width),
        },
        plan.epochs,
        {
            name: encoder + sum(layer_memory(each, plan, n_labels, width).values())
            for name, each in choices.items()
        },
        memory_limit,
    )


def layer_memory(outputs: OutputPlan, plan: Plan, n_labels: int, width: int) -> dict[str, int]:
    """Return the bytes of an output layer in training, by what they hold."""
    rows, on_gpu = plan.batch_size, plan.device != "cpu"
    adam = outputs.optimiser == "adam"
    bias = {"bias": 4 * n_labels * (3 if adam else 1)}
    if outputs.fan_in is not None:
        inputs = width if outputs.hidden is None else int(outputs.hidden)
        slots = n_labels * int(outputs.fan_in)
        hidden = {} if outputs.hidden is None else {"hidden layer": 12 * inputs * (width + 1)}
        return {
            "output values": 4 * slots,
            "output index": (2 if inputs <= 1 << 16 else 4) * slots,
            "Adam's moments": 8 * slots,
            **hidden,
            "a chunk of scores": 8 * rows * min(n_labels, _FEW),
            **bias,
        }
    size = _BYTES[outputs.precision] * n_labels * width
    out = {"output weights": size}
    if adam:
        out["Adam's moments"] = 2 * size
    if outputs.momentum:
        out["momentum"] = 4 * n_labels * width
    if outputs.compensated:
        out["compensation"] = int(outputs.compensated * size)
    chunk = chunk_edges(rows, n_labels)[1] if on_gpu else min(n_labels, 256)
    out[f"gradients of {chunk:,} labels at a time"] = (2 if on_gpu else 4) * rows * chunk
    return {**out, **bias}


def timed(work: Callable[[], Any], device: str, times: int = 3) -> float:
    """Return the seconds of the quickest of some calls, after one that is not counted."""
    found = []
    for _ in range(times + 1):
        began = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return min(found[1:])


def _step_seconds(outputs: OutputPlan, plan: Plan, n_labels: int, width: int) -> float:
    """Return the seconds of a step over all labels, from one over a few."""
    count, rng = min(n_labels, _MEASURED), np.random.default_rng(0)
    rows, device = plan.batch_size, torch.device(plan.device)
    start = drawn_outputs(outputs, rng, count, width, np.zeros(count, np.float32), 0.02)
    layer = chosen_layer(outputs, plan, start, total_steps=1, counts=np.ones(count))
    goal = named("sigmoid", reduction=outputs.reduction)
    labels = rng.integers(0, count, rows)
    Y = sp.csr_matrix((np.ones(rows, "f"), labels, np.arange(rows + 1)), shape=(rows, count))
    targets = goal.rows(Y, device, 0).take(torch.arange(rows, device=device))
    h = torch.randn(rows, width, device=device)
    return timed(lambda: layer.step(h, targets, goal, 1e-6), plan.device) * n_labels / count
