"""The training behind ``Network``: a ``Bag`` and an output layer, from arrays to arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail.deep.answers import OutputArrays
from longtail.deep.batches.feed import RowFeed
from longtail.deep.batches.sparse_rows import SparseRows
from longtail.deep.encoders.bag import Bag, drawn_weights
from longtail.deep.objectives import ErrorLength, Objective, SquaredError, named
from longtail.deep.optimisers import LazyAdam
from longtail.deep.output_plan import OutputPlan
from longtail.deep.outputs import Full
from longtail.deep.outputs.chosen import chosen_layer, drawn_outputs, output_arrays
from longtail.deep.training.checkpoint import open_checkpoint
from longtail.deep.training.cost import Cost
from longtail.deep.training.output_cost import output_cost, timed
from longtail.deep.training.plan import Plan
from longtail.deep.training.pruning import Pruning
from longtail.deep.training.trainer import Outcome, Trainer, require_device
from longtail.deep.training.validation import LabelValidation, TargetValidation
from longtail.deep.workers import single_threads

__all__ = ["label_counts", "plan_perceptron", "train_perceptron"]

Trained = tuple[np.ndarray, np.ndarray, OutputArrays]


def train_perceptron(
    X: sp.csr_matrix,
    targets: Any,
    plan: Plan,
    *,
    hidden: int,
    loss: str,
    correction: str = "auto",
    propensity: np.ndarray | None = None,
    outputs: OutputPlan | None = None,
    start: Trained | None = None,
    after_epoch: Callable[[int, float, Trained], None] | None = None,
) -> tuple[Trained, Outcome]:
    """Train on rows ``X`` and ``targets``: CSR labels, or a dense matrix for a regression.

    Returns the arrays ``w1`` (d, h), ``b1`` (h,) and those of the output layer, and how it went.
    ``outputs``: what the output layer is; ``start``: such arrays to begin with.
    ``after_epoch(epoch, seconds, arrays)`` may look at them.
    """
    require_device(plan.device)
    device = torch.device(plan.device)
    outputs = outputs or OutputPlan()
    objective = named(
        loss,
        reduction=outputs.reduction,
        correction=correction,
        propensity=propensity,
        seed=plan.seed,
    )
    valid, rows = plan.split(X.shape[0])
    if outputs.learning_rate is not None:
        plan = replace(plan, output_learning_rate=outputs.learning_rate)
    on_cpu = device.type == "cpu"
    with single_threads(plan.threads) if on_cpu else nullcontext() as pool:
        if start is None:
            start_w1, start_b1, first = _drawn(
                X.shape[1], hidden, targets[rows], plan.seed, objective, outputs
            )
        else:
            start_w1, start_b1, first = start
        w1, b1 = (torch.tensor(array).to(device) for array in (start_w1, start_b1))
        encoder = Bag(w1, b1, pool)
        output = chosen_layer(
            outputs,
            plan,
            first,
            total_steps=plan.epochs * -(-len(rows) // plan.batch_size),
            counts=label_counts(targets),
            pool=pool,
        )
        optimiser = LazyAdam(encoder, plan.weight_decay)
        pruning = None
        if plan.keep is not None:
            if not isinstance(output, Full):
                raise ValueError("keep prunes float32 layers trained by Adam, not the others")
            pruning = Pruning([optimiser.states["weight"], output.weights], plan)
            if start is not None:
                pruning.mask_zeros()
        inputs = SparseRows(X, device)
        whole = objective.rows(targets, device, 0)

        def of_epoch(epoch: int) -> Any:
            return objective.rows(targets, device, epoch) if objective.changes else whole

        def trained() -> Trained:
            w1, b1 = (t.detach().cpu().numpy().copy() for t in (encoder.weight, encoder.bias))
            return w1, b1, output_arrays(output)

        trainer = Trainer(
            encoder,
            output,
            objective,
            RowFeed(inputs, of_epoch, rows, plan.batch_size, plan.seed, device),
            plan,
            validate=_validation(objective, inputs, targets, valid, plan),
            checkpoint=open_checkpoint(
                plan,
                [X, targets, propensity],
                loss=loss,
                hidden=hidden,
                correction=correction,
                **({} if outputs == OutputPlan() else {"outputs": asdict(outputs)}),
            ),
            pruning=pruning,
            optimiser=optimiser,
            after_epoch=None
            if after_epoch is None
            else lambda epoch, seconds: after_epoch(epoch, seconds, trained()),
        )
        outcome = trainer.run()
        return trained(), outcome


def plan_perceptron(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    plan: Plan,
    outputs: OutputPlan,
    *,
    hidden: int,
    memory_limit: int | None,
) -> Cost:
    """Return what training on these rows would take."""
    require_device(plan.device)
    device = torch.device(plan.device)
    rng = np.random.default_rng(0)
    encoder = Bag(
        torch.tensor(drawn_weights(rng, X.shape[1], hidden, 0.1)).to(device),
        torch.zeros(hidden, device=device),
    )
    optimiser = LazyAdam(encoder, plan.weight_decay)
    rows = torch.arange(min(X.shape[0], plan.batch_size), device=device)
    batch = SparseRows(X[: plan.batch_size], device).take(rows)

    def step() -> None:
        encoder(batch).sum().backward()
        optimiser.step(0.0)

    return output_cost(
        outputs,
        plan,
        n_rows=X.shape[0],
        n_labels=Y.shape[1],
        width=hidden,
        encoder=sum(12 * p.numel() for p in encoder.parameters()),  # gradients are sparse
        encoder_seconds=timed(step, plan.device),
        memory_limit=memory_limit,
    )


def label_counts(targets: Any) -> np.ndarray | None:
    """Return how often every label occurs, (L,); None for a regression."""
    if not sp.issparse(targets):
        return None
    return np.asarray(targets.sum(axis=0), dtype=np.float64).ravel()


def _drawn(
    d: int, h: int, targets: Any, seed: int, objective: Objective, outputs: OutputPlan
) -> Trained:
    """Return first weights. A feature that few rows have keeps much of its own: a regression, which
    is stopped early, starts with small ones.
    """
    rng = np.random.default_rng([seed, 3])
    regression = isinstance(objective, SquaredError)
    w1 = drawn_weights(rng, d, h, 0.01 if regression else 0.1)
    bias = objective.start_bias(targets)
    last = drawn_outputs(outputs, rng, targets.shape[1], h, bias, 0.1 / np.sqrt(h))
    return w1, np.zeros(h, np.float32), last


def _validation(
    objective: Objective, inputs: SparseRows, targets: Any, rows: np.ndarray, plan: Plan
) -> Callable[..., float] | None:
    if not len(rows):
        return None
    if isinstance(objective, SquaredError):
        by_length = isinstance(objective, ErrorLength)
        return TargetValidation(inputs, targets, rows, by_length=by_length)
    return LabelValidation(inputs, targets, rows, plan.metric)
