"""The training behind ``TextNetwork``: tokens and labels to an encoder and output weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from longtail.data.tokens import Tokens
from longtail.deep.batches.feed import RowFeed
from longtail.deep.batches.token_rows import TokenRows
from longtail.deep.encoders.average import Average
from longtail.deep.encoders.convolution import Convolution
from longtail.deep.encoders.transformer import Transformer
from longtail.deep.objectives import ErrorLength, SquaredError, named
from longtail.deep.outputs import Full
from longtail.deep.training.checkpoint import open_checkpoint
from longtail.deep.training.plan import Plan
from longtail.deep.training.trainer import Outcome, Trainer, own_randomness, require_device
from longtail.deep.training.validation import LabelValidation, TargetValidation
from longtail.propensity import JainPropensity
from longtail.text.pretrained import fetched

__all__ = ["Trained", "first_encoder", "torch_threads", "train_text_network"]


@dataclass
class Trained:
    """A trained encoder (a torch module), output weights (L, e) and bias (L,), and how it went."""

    encoder: nn.Module
    weights: np.ndarray
    bias: np.ndarray
    outcome: Outcome


def train_text_network(
    model: Any,
    tokens: Tokens,
    targets: Any,
    plan: Plan,
    *,
    loss: str,
    propensity: np.ndarray | None,
    n_tokens: int,
    start: Any = None,
) -> Trained:
    """Train on ``tokens`` and ``targets``: CSR labels, or a dense matrix for a regression.

    ``model`` has the parameters of the encoder; ``start`` is a fitted model to go on from.
    """
    require_device(plan.device)
    device = torch.device(plan.device)
    objective = named(loss, correction=model.correction, propensity=propensity, seed=plan.seed)
    valid, rows = plan.split(len(tokens))
    with own_randomness(device):
        torch.manual_seed(plan.seed % 2**63)
        encoder = first_encoder(model, n_tokens) if start is None else start.encoder_.module()
        if start is None and isinstance(encoder, Average):
            encoder.prepare(tokens[rows])
        encoder = encoder.to(device)
    if start is None:
        rng = np.random.default_rng([plan.seed, 3])
        shape = (targets.shape[1], encoder.width)
        weights = rng.standard_normal(shape, np.float32) * np.float32(0.02)
        bias = objective.start_bias(targets[rows])
    else:
        weights, bias = start.output_weights_, start.output_bias_
    output = Full(
        torch.tensor(weights).to(device),
        torch.tensor(bias).to(device),
        weight_decay=plan.weight_decay,
        low_precision=plan.precision == "bfloat16",
    )
    inputs = TokenRows(tokens, device, getattr(encoder, "max_length", None))
    whole = objective.rows(targets, device, 0)
    validate: Any = None
    if len(valid) and isinstance(objective, SquaredError):
        by_length = isinstance(objective, ErrorLength)
        validate = TargetValidation(inputs, targets, valid, by_length=by_length)
    elif len(valid):
        instances = targets[: len(tokens) - plan.n_label_rows]
        p = JainPropensity().fit(instances) if plan.metric == "psp" else None
        validate = LabelValidation(inputs, targets, valid, plan.metric, p)
    trainer = Trainer(
        encoder,
        output,
        objective,
        RowFeed(
            inputs,
            lambda e: objective.rows(targets, device, e) if objective.changes else whole,
            rows,
            plan.batch_size,
            plan.seed,
            device,
        ),
        plan,
        validate=validate,
        checkpoint=open_checkpoint(
            plan,
            [tokens, targets, propensity],
            loss=loss,
            correction=model.correction,
            encoder=str(model.encoder),
            pooling=model.pooling,
            frozen=model.frozen_layers,
            threads=plan.threads,
        ),
        title=type(model).__name__,
    )
    with torch_threads(plan):
        outcome = trainer.run()
    trained = [array.detach().cpu().numpy().copy() for array in output.trained().values()]
    return Trained(encoder.eval(), trained[0], trained[1], outcome)


@contextmanager
def torch_threads(plan: Plan) -> Iterator[None]:
    """Let torch use the threads of a plan, on a CPU."""
    before = torch.get_num_threads()
    try:
        if plan.device == "cpu":
            torch.set_num_threads(plan.threads)
        yield
    finally:
        torch.set_num_threads(before)


def first_encoder(model: Any, n_tokens: int) -> nn.Module:
    """Return the encoder to begin with."""
    if model.encoder == "average":
        return Average(n_tokens)
    if model.encoder == "convolution":
        return Convolution(n_tokens, length=model._longest())
    return Transformer.pretrained(
        fetched(model.encoder),
        pooling=model.pooling,
        frozen_layers=model.frozen_layers,
        gradient_checkpointing=model.gradient_checkpointing,
    )
