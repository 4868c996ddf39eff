"""``Forecast``: what a training will take, before it begins: memory by part and time per epoch."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

from longtail.deep.output_plan import OutputPlan

__all__ = ["Forecast", "forecast"]

_BYTES = {"float32": 4, "bfloat16": 2, "float8": 1}
_GRADIENTS = 1 << 27  # bytes of the gradients of a chunk on a GPU
_MEASURED = 20_000  # labels of the step that is timed
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class Forecast:
    """``parts``: bytes by name, of the layer as the model has it; ``choices``: the bytes of all,
    with other output layers, by name; ``best``: the first of them that fits ``memory_limit``, or
    None; ``chunk``: labels that are scored at a time; ``seconds``: of an epoch's output layer on
    this device, measured on a few labels, or None where torch is not installed.
    """

    n_labels: int
    parts: dict[str, int]
    choices: dict[str, int]
    chunk: int
    memory_limit: int | None = None
    best: str | None = None
    seconds: float | None = None
    device: str = "cpu"
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Return the bytes of all parts."""
        return sum(self.parts.values())

    def __str__(self) -> str:
        lines = [f"{self.n_labels:,} labels on {self.device}, {self.chunk:,} at a time"]
        lines += [f"  {name:<28} {told(size):>10}" for name, size in self.parts.items()]
        lines.append(f"  {'together':<28} {told(self.total):>10}")
        if self.seconds is not None:
            lines.append(f"  {'output layer, per epoch':<28} {self.seconds:>8.1f} s")
        lines.append("with other output layers:")
        for name, size in self.choices.items():
            fits = "" if self.memory_limit is None or size > self.memory_limit else "  fits"
            lines.append(f"  {name:<28} {told(size):>10}{fits}")
        if self.memory_limit is not None:
            best = self.best or "none: raise memory_limit, or lower fan_in"
            lines.append(f"first that fits {told(self.memory_limit)}: {best}")
        return "\n".join([*lines, *self.notes])


def told(size: float) -> str:
    """Return a number of bytes for people.

    >>> told(3 << 30)
    '3.0 GiB'
    """
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.1f} {unit}"


def forecast(
    outputs: OutputPlan,
    *,
    n_rows: int,
    n_labels: int,
    width: int,
    batch_size: int,
    device: str,
    encoder: int,
    memory_limit: int | None = None,
    measure: bool = True,
) -> Forecast:
    """Return what a training takes with vectors of a ``width`` and an encoder of so many bytes, its
    gradients and moments included.
    """
    on_gpu = device.startswith("cuda")
    chunk = min(n_labels, max(128, _GRADIENTS // 2 // max(1, batch_size))) if on_gpu else 256
    if outputs.fan_in is not None and not on_gpu:
        chunk = min(n_labels, 4096)

    def parts_of(plan: OutputPlan) -> dict[str, int]:
        out = {"encoder, gradients, moments": encoder}
        if plan.fan_in is not None:
            inputs = width if plan.hidden is None else plan.hidden
            slots = n_labels * plan.fan_in
            out["output values"] = 4 * slots
            out["output index"] = (2 if inputs <= 1 << 16 else 4) * slots
            out["Adam's moments"] = 8 * slots
            if plan.hidden is not None:
                out["hidden layer"] = 12 * plan.hidden * (width + 1)
            out["a chunk of scores"] = 8 * batch_size * min(n_labels, chunk)
        else:
            weights = n_labels * width
            out["output weights"] = _BYTES[plan.precision] * weights
            if plan.optimiser == "adam":
                out["Adam's moments"] = 8 * weights
            if plan.momentum:
                out["momentum"] = 4 * weights
            if plan.compensated:
                out["compensation"] = int(plan.compensated * _BYTES[plan.precision] * weights)
            out["a chunk of gradients"] = (2 if on_gpu else 4) * batch_size * min(n_labels, chunk)
        out["bias"] = 4 * n_labels * (3 if plan.optimiser == "adam" else 1)
        return out

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
    sizes = {name: sum(parts_of(plan).values()) for name, plan in choices.items()}
    best = None
    if memory_limit is not None:
        best = next((name for name, size in sizes.items() if size <= memory_limit), None)
    seconds = None
    if measure:
        per_step = _measured_step(outputs, n_labels, width, batch_size, device)
        seconds = None if per_step is None else per_step * -(-n_rows // batch_size)
    return Forecast(n_labels, parts_of(outputs), sizes, chunk, memory_limit, best, seconds, device)


def _measured_step(
    outputs: OutputPlan, n_labels: int, width: int, batch_size: int, device: str
) -> float | None:
    """Return the seconds of a step over all labels, from one over a few; None without torch."""
    try:
        import torch
    except ModuleNotFoundError:
        return None
    import numpy as np
    import scipy.sparse as sp

    from longtail.deep.objectives import named
    from longtail.deep.outputs.chosen import chosen_layer, drawn_outputs
    from longtail.deep.training.plan import Plan

    count, rng = min(n_labels, _MEASURED), np.random.default_rng(0)
    plan = Plan(1, batch_size, 1e-3, 0, 1, device, "float32")
    bias = np.zeros(count, np.float32)
    start = drawn_outputs(outputs, rng, count, width, bias, 0.02)
    if start.weights.dtype != np.float32:
        return None
    layer = chosen_layer(outputs, plan, start, total_steps=1)
    goal = named("sigmoid", reduction=outputs.reduction)
    place = torch.device(device)
    Y = sp.csr_matrix(
        (np.ones(batch_size, "f"), rng.integers(0, count, batch_size), np.arange(batch_size + 1)),
        shape=(batch_size, count),
    )
    targets = goal.rows(Y, place, 0).take(torch.arange(batch_size, device=place))
    h: Any = torch.randn(batch_size, width, device=place)
    times = []
    for _ in range(3):
        if place.type == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        layer.step(h, targets, goal, 1e-6)
        if place.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times) * n_labels / count
