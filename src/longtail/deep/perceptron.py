"""The training behind ``Network``: a ``Bag`` and a ``Full`` layer from arrays to arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail.deep.batches.feed import RowFeed
from longtail.deep.batches.sparse_rows import SparseRows
from longtail.deep.encoders.bag import Bag, drawn_weights
from longtail.deep.objectives import ErrorLength, Objective, SquaredError, named
from longtail.deep.optimisers import LazyAdam
from longtail.deep.outputs import Full
from longtail.deep.training.checkpoint import open_checkpoint
from longtail.deep.training.plan import Plan
from longtail.deep.training.pruning import Pruning
from longtail.deep.training.trainer import Outcome, Trainer, require_device
from longtail.deep.training.validation import LabelValidation, TargetValidation
from longtail.deep.workers import single_threads

__all__ = ["train_perceptron"]

Arrays = tuple[np.ndarray, ...]


def train_perceptron(
    X: sp.csr_matrix,
    targets: Any,
    plan: Plan,
    *,
    hidden: int,
    loss: str,
    correction: str = "auto",
    propensity: np.ndarray | None = None,
    start: Arrays | None = None,
    after_epoch: Callable[[int, float, Arrays], None] | None = None,
) -> tuple[Arrays, Outcome]:
    """Train on rows ``X`` and ``targets``: CSR labels, or a dense matrix for a regression.

    Returns the arrays ``w1`` (d, h), ``b1`` (h,), ``w2`` (L, h), ``b2`` (L,), and how it went.
    ``start``: such arrays to begin with. ``after_epoch(epoch, seconds, arrays)`` may look at them.
    """
    require_device(plan.device)
    device = torch.device(plan.device)
    objective = named(loss, correction=correction, propensity=propensity, seed=plan.seed)
    valid, rows = plan.split(X.shape[0])
    on_cpu = device.type == "cpu"
    with single_threads(plan.threads) if on_cpu else nullcontext() as pool:
        begin = _drawn(X.shape[1], hidden, targets[rows], plan.seed, objective)
        arrays = begin if start is None else start
        w1, b1, w2, b2 = (torch.tensor(array).to(device) for array in arrays)
        encoder = Bag(w1, b1, pool)
        output = Full(
            w2,
            b2,
            weight_decay=plan.weight_decay,
            low_precision=plan.precision == "bfloat16",
            pool=pool,
        )
        optimiser = LazyAdam(encoder, plan.weight_decay)
        pruning = None
        if plan.keep is not None:
            pruning = Pruning([optimiser.states["weight"], output.weights], plan)
            if start is not None:
                pruning.mask_zeros()
        inputs = SparseRows(X, device)
        whole = objective.rows(targets, device, 0)

        def of_epoch(epoch: int) -> Any:
            return objective.rows(targets, device, epoch) if objective.changes else whole

        def trained() -> Arrays:
            learned = (encoder.weight, encoder.bias, *output.trained().values())
            return tuple(t.detach().cpu().numpy().copy() for t in learned)

        trainer = Trainer(
            encoder,
            output,
            objective,
            RowFeed(inputs, of_epoch, rows, plan.batch_size, plan.seed, device),
            plan,
            validate=_validation(objective, inputs, targets, valid, plan),
            checkpoint=open_checkpoint(
                plan, [X, targets, propensity], loss=loss, hidden=hidden, correction=correction
            ),
            pruning=pruning,
            optimiser=optimiser,
            after_epoch=None
            if after_epoch is None
            else lambda epoch, seconds: after_epoch(epoch, seconds, trained()),
        )
        outcome = trainer.run()
        return trained(), outcome


def _drawn(d: int, h: int, targets: Any, seed: int, objective: Objective) -> Arrays:
    """Return first weights. A feature that few rows have keeps much of its own: a regression, which
    is stopped early, starts with small ones.
    """
    rng = np.random.default_rng([seed, 3])
    regression = isinstance(objective, SquaredError)
    w1 = drawn_weights(rng, d, h, 0.01 if regression else 0.1)
    w2 = drawn_weights(rng, targets.shape[1], h, 0.1 / np.sqrt(h))
    return w1, np.zeros(h, np.float32), w2, objective.start_bias(targets)


def _validation(
    objective: Objective, inputs: SparseRows, targets: Any, rows: np.ndarray, plan: Plan
) -> Callable[..., float] | None:
    if not len(rows):
        return None
    if isinstance(objective, SquaredError):
        by_length = isinstance(objective, ErrorLength)
        return TargetValidation(inputs, targets, rows, by_length=by_length)
    return LabelValidation(inputs, targets, rows, plan.metric)
