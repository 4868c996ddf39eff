"""From the parameters of a model to an output layer, and back to arrays."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np
import torch

from longtail.deep.answers import OutputArrays
from longtail.deep.group import Group
from longtail.deep.output_plan import OutputPlan
from longtail.deep.outputs.fan_in import FanIn, Rewiring, drawn_index
from longtail.deep.outputs.full import Full
from longtail.deep.outputs.label_shard import LabelShard
from longtail.deep.outputs.layer import Layer
from longtail.deep.outputs.lean import Lean
from longtail.deep.training.plan import Plan

__all__ = ["chosen_layer", "drawn_outputs", "output_arrays"]


def drawn_outputs(
    plan: OutputPlan,
    rng: np.random.Generator,
    labels: int,
    width: int,
    bias: np.ndarray,
    spread: float,
) -> OutputArrays:
    """Return first weights: of a layer in full with a standard deviation of ``spread``, of a fan-in
    layer uniform within ``1 / sqrt(f)``.
    """
    if plan.fan_in is None:
        weights = rng.standard_normal((labels, width), np.float32) * np.float32(spread)
        return OutputArrays(weights, bias)
    hidden, inputs = None, width
    if plan.hidden is not None:
        inputs = int(plan.hidden)
        above = rng.standard_normal((inputs, width), np.float32) * np.float32(width**-0.5)
        hidden = above, np.zeros(inputs, np.float32)
    index = drawn_index(rng, int(plan.fan_in), labels, inputs)
    within = plan.fan_in**-0.5
    values = rng.uniform(-within, within, index.shape).astype(np.float32)
    return OutputArrays(values, bias, index, hidden, width)


def chosen_layer(
    output: OutputPlan,
    plan: Plan,
    start: OutputArrays,
    *,
    total_steps: int,
    counts: np.ndarray | None = None,
    pool: Executor | None = None,
    group: Group | None = None,
) -> Layer:
    """Return the layer of a plan, which begins with the arrays ``start``.

    ``total_steps`` of the training; ``counts`` (L,): how often labels occur; ``group``: the
    processes that share the labels.
    """
    if group is not None:
        own = _own_labels(output, start, group)
        some = OutputArrays(start.weights[own], start.bias[own])
        return LabelShard(
            chosen_layer(output, plan, some, total_steps=total_steps, pool=pool),
            own,
            len(start.bias),
            group,
        )
    device = torch.device(plan.device)

    def to(array: np.ndarray) -> torch.Tensor:
        signed = array.view(np.int16) if array.dtype == np.uint16 else array
        return torch.tensor(signed).to(device)

    bias = to(start.bias)
    decay = plan.weight_decay if output.weight_decay is None else output.weight_decay
    if start.index is not None:
        rewiring = None
        if output.rewire_every is not None:
            by_share = output.rewire_threshold is None
            rewiring = Rewiring(
                every=int(output.rewire_every),
                until=max(1, int(output.rewire_until * total_steps)),
                share=output.rewire_share if by_share else None,
                threshold=output.rewire_threshold or 0.0,
                zero=not output.keep_values,
                reset=output.reset,
                seed=plan.seed,
            )
        index = to(start.index)
        return FanIn(
            to(start.weights),
            index.view(torch.uint16) if start.index.dtype == np.uint16 else index,
            bias,
            start.width,
            wide=None if start.hidden is None else (to(start.hidden[0]), to(start.hidden[1])),
            rewiring=rewiring,
            weight_decay=decay,
            threads=plan.threads,
            pool=pool,
        )
    weights = to(start.weights)
    if output.optimiser == "adam":
        low = plan.low
        return Full(weights, bias, weight_decay=decay, low_precision=low, pool=pool)
    compensated = None
    if output.compensated and counts is not None:
        order = np.argsort(-counts, kind="stable")
        compensated = torch.tensor(order[: int(output.compensated * len(order))])
    return Lean(
        weights,
        bias,
        precision=output.precision,
        momentum=output.momentum,
        weight_decay=decay,
        compensated=compensated,
        seed=plan.seed,
        pool=pool,
    )


def _own_labels(output: OutputPlan, start: OutputArrays, group: Group) -> slice:
    """Return the labels of this process; raise ValueError for a layer that cannot be cut."""
    cannot = [
        name
        for name, used in (
            ("fan_in", output.fan_in is not None),
            ("auxiliary", bool(output.auxiliary)),
            ("compensated", bool(output.compensated)),
        )
        if used
    ]
    if cannot:
        raise ValueError(
            f"an output layer with {cannot[0]} is trained by one process, not by {group.size}"
        )
    return group.share_of_labels(len(start.bias))


def output_arrays(layer: Any) -> OutputArrays:
    """Return what a layer has learned, with the labels of every process."""
    learned = layer.whole(layer.trained())
    arrays = {name: t.detach().cpu().numpy().copy() for name, t in learned.items()}
    if "index" in arrays:
        hidden = None
        if "wide_weights" in arrays:
            hidden = arrays["wide_weights"], arrays["wide_bias"]
        return OutputArrays(arrays["values"], arrays["bias"], arrays["index"], hidden, layer.width)
    weights = arrays["weights"]
    if weights.dtype == np.int16:
        weights = weights.view(np.uint16)
    return OutputArrays(weights, arrays["bias"])
