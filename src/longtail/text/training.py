"""The training behind ``TextNetwork``: tokens and labels to an encoder and output weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from longtail.data.tokens import Tokens
from longtail.deep.answers import OutputArrays
from longtail.deep.batches.feed import RowFeed
from longtail.deep.batches.token_rows import TokenRows
from longtail.deep.encoders.average import Average
from longtail.deep.encoders.convolution import Convolution
from longtail.deep.encoders.transformer import Transformer
from longtail.deep.group import Group
from longtail.deep.objectives import ErrorLength, SquaredError, named
from longtail.deep.output_plan import OutputPlan
from longtail.deep.outputs.chosen import chosen_layer, drawn_outputs, output_arrays
from longtail.deep.perceptron import label_counts
from longtail.deep.training.checkpoint import digest_of, open_checkpoint
from longtail.deep.training.cost import Cost
from longtail.deep.training.output_cost import output_cost, timed
from longtail.deep.training.plan import Plan
from longtail.deep.training.trainer import Outcome, Trainer, own_randomness, require_device
from longtail.deep.training.validation import LabelValidation, TargetValidation
from longtail.propensity import JainPropensity
from longtail.text.label_clusters import with_clusters
from longtail.text.pretrained import fetched

if TYPE_CHECKING:
    from longtail.text.ranker import TextRanker
    from longtail.text.text_network import TextNetwork

__all__ = ["Trained", "first_encoder", "plan_text_network", "torch_threads", "train_text_network"]


@dataclass
class Trained:
    """A trained encoder (a torch module), the arrays of the output layer, and how it went."""

    encoder: nn.Module
    outputs: OutputArrays
    outcome: Outcome


def train_text_network(
    model: TextNetwork,
    tokens: Tokens,
    targets: Any,
    plan: Plan,
    *,
    loss: str,
    propensity: np.ndarray | None,
    outputs: OutputPlan,
    n_tokens: int,
    start: Any = None,
) -> Trained:
    """Train on ``tokens`` and ``targets``: CSR labels, or a dense matrix for a regression.

    ``model`` has the parameters of the encoder, ``outputs`` those of the output layer; ``start`` is
    a fitted model to go on from.
    """
    require_device(plan.device)
    device = torch.device(plan.device)
    objective = named(
        loss,
        reduction=outputs.reduction,
        correction=model.correction,
        propensity=propensity,
        seed=plan.seed,
    )
    if outputs.learning_rate is not None:
        plan = replace(plan, output_learning_rate=outputs.learning_rate)
    group = Group.current()
    if group is not None:
        group.check_same((str(plan), str(outputs), digest_of([tokens, targets])))
    valid, rows = plan.split(len(tokens))
    with own_randomness(device):
        torch.manual_seed(plan.seed % 2**63)
        encoder = first_encoder(model, n_tokens) if start is None else start.encoder_.module()
        if start is None and isinstance(encoder, Average):
            encoder.prepare(tokens[rows])
        encoder = encoder.to(device)
    if group is not None:
        group.same_start(encoder)
    if start is None:
        rng = np.random.default_rng([plan.seed, 3])
        bias = objective.start_bias(targets[rows])
        first = drawn_outputs(outputs, rng, targets.shape[1], encoder.width, bias, 0.02)
    else:
        first = start._output_arrays()
    steps = -(-len(rows) // plan.batch_size)
    output = chosen_layer(
        outputs,
        plan,
        first,
        total_steps=plan.epochs * steps,
        counts=label_counts(targets),
        group=group,
    )
    if outputs.auxiliary:
        output = with_clusters(output, outputs, plan, tokens[rows], targets[rows], steps)
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
            **({} if outputs == OutputPlan() else {"outputs": asdict(outputs)}),
        ),
        group=group,
        title=type(model).__name__,
    )
    with torch_threads(plan):
        outcome = trainer.run()
    return Trained(encoder.eval(), output_arrays(getattr(output, "main", output)), outcome)


def plan_text_network(
    model: TextNetwork,
    tokens: Tokens,
    Y: Any,
    plan: Plan,
    outputs: OutputPlan,
    n_tokens: int,
    memory_limit: int | None,
) -> Cost:
    """Return what training on these texts and labels would take."""
    require_device(plan.device)
    device = torch.device(plan.device)
    with own_randomness(device), torch_threads(plan):
        encoder = first_encoder(model, n_tokens).to(device).train()
        inputs = TokenRows(tokens, device, getattr(encoder, "max_length", None))
        batch = inputs.take(torch.arange(min(len(tokens), plan.batch_size), device=device))
        trained = any(p.requires_grad for p in encoder.parameters())

        def step() -> None:
            with torch.autocast(device.type, torch.bfloat16, enabled=plan.low):
                vectors = encoder(batch).float()
            if trained:
                vectors.sum().backward()
                encoder.zero_grad(set_to_none=True)

        seconds = timed(step, plan.device)
        return output_cost(
            outputs,
            plan,
            n_rows=len(tokens),
            n_labels=Y.shape[1],
            width=encoder.width,
            encoder=sum(p.numel() * (16 if p.requires_grad else 4) for p in encoder.parameters()),
            encoder_seconds=seconds,
            memory_limit=memory_limit,
        )


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


def first_encoder(model: TextRanker, n_tokens: int) -> nn.Module:
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
