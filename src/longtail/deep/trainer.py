"""The training loop: epochs, early stopping, pruning, checkpoints, progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail._progress import Progress
from longtail.deep.adam import Adam, Parameters
from longtail.deep.batches import SparseRows
from longtail.deep.checkpoint import resume, save
from longtail.deep.outputs import all_logits
from longtail.deep.plan import Plan
from longtail.deep.pruning import PRUNED, prune
from longtail.deep.schedule import kept_after_epoch
from longtail.deep.step import train_step
from longtail.deep.targets import REGRESSIONS

__all__ = ["Outcome", "require_device", "train"]

KS = (1, 3, 5)


@dataclass
class Outcome:
    """Trained arrays by name (NumPy), and one record per epoch: ``epoch``, ``seconds`` since the
    start, ``validation`` (what early stopping watches, higher is better; None without a split).
    """

    weights: dict[str, np.ndarray]
    history: list[dict[str, Any]]
    best_epoch: int


def require_device(name: str) -> None:
    """Refuses a GPU that is not there."""
    count = torch.cuda.device_count()
    if name != "cpu" and int(name.partition(":")[2] or 0) >= count:
        raise ValueError(f"there is no device {name!r}: torch sees {count} GPUs")


def train(
    X: sp.csr_matrix,
    targets: Any,
    plan: Plan,
    *,
    start: dict[str, np.ndarray] | None = None,
    after_epoch: Callable[[int, float, dict[str, np.ndarray]], None] | None = None,
) -> Outcome:
    """Trains on rows ``X`` and ``targets``: CSR labels, or a dense matrix for a regression.

    ``start``: weights to begin with. ``after_epoch(epoch, seconds, weights)`` may look at the
    network; the time it takes is not counted.
    """
    on_cpu = plan.device == "cpu"
    threads = min(plan.threads, os.cpu_count() or 1)
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        if on_cpu:
            torch.set_num_threads(1)  # the pool has the others
        with torch.no_grad():
            training = _Training(X, targets, plan, start, pool if on_cpu else None)
            return training.run(after_epoch)
    finally:
        pool.shutdown()
        torch.set_num_threads(before)


class _Training:
    def __init__(
        self,
        X: Any,
        targets: Any,
        plan: Plan,
        start: dict[str, np.ndarray] | None,
        pool: Executor | None,
    ) -> None:
        self.plan, self.device, self.pool = plan, torch.device(plan.device), pool
        n, d = X.shape
        order = np.random.default_rng([plan.seed, 0]).permutation(n)
        n_valid = int(n * plan.validation)
        self.valid, self.rows = order[:n_valid], np.sort(order[n_valid:])
        self.X, self.raw_X, self.raw_targets = SparseRows(X, self.device), X, targets
        self.labels: Any
        if plan.loss in REGRESSIONS:
            self.labels = torch.tensor(np.asarray(targets, np.float32)).to(self.device)
        else:
            self.labels = SparseRows(targets, self.device)
        arrays = _initial(d, targets, self.rows, plan) if start is None else start
        self.parameters = Parameters(
            {name: torch.tensor(array).to(self.device) for name, array in arrays.items()}
        )
        if start is not None and plan.keep is not None:
            for name in PRUNED:  # what was pruned stays pruned
                self.parameters.masks[name] = self.parameters.weights[name] != 0
        self.step = 0
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, np.ndarray] | None = None
        self.best_value, self.best_epoch = -np.inf, 0

    def run(self, after_epoch: Any) -> Outcome:
        plan, spent = self.plan, resume(self)
        with Progress("Network") as progress:
            for epoch in range(len(self.history) + 1, plan.epochs + 1):
                if self._stopped():
                    break
                began = time.perf_counter()
                self._epoch(epoch, progress)
                self._prune(epoch)
                if self.device.type == "cuda":
                    torch.cuda.synchronize()
                spent += time.perf_counter() - began
                self._check_finite()
                value = self._validate()
                self.history.append({"epoch": epoch, "seconds": spent, "validation": value})
                if after_epoch is not None:
                    after_epoch(epoch, spent, self._arrays())
                self._keep_best(epoch, value)
                save(self, spent)
        weights = self._arrays() if self.best is None else self.best
        return Outcome(weights, self.history, self.best_epoch)

    def _epoch(self, epoch: int, progress: Progress) -> None:
        plan = self.plan
        order = np.random.default_rng([plan.seed, 1, epoch]).permutation(self.rows)
        rows = torch.tensor(order).to(self.device)
        chance = torch.Generator(self.device)
        chance.manual_seed(int(np.random.SeedSequence([plan.seed, 2, epoch]).generate_state(1)[0]))
        total = -(-len(rows) // plan.batch_size)
        low = plan.precision == "bfloat16"
        batches = self.X.batches(rows, plan.batch_size)
        for i, (batch, targets) in enumerate(zip(batches, self._targets(rows), strict=True)):
            progress((epoch - 1) * total + i, plan.epochs * total)
            mask = None
            if plan.dropout > 0:
                shape = (len(batch), plan.hidden)
                mask = torch.rand(shape, generator=chance, device=self.device) >= plan.dropout
                mask = mask / (1 - plan.dropout)
            self.step += 1
            left = 1 - (self.step - 1) / (total * plan.epochs)  # the rate falls linearly to zero
            adam = Adam(plan.learning_rate * left, plan.weight_decay)
            train_step(
                self.parameters,
                batch,
                targets,
                plan.loss,
                adam,
                self.step,
                dropout_mask=mask,
                low_precision=low,
                pool=self.pool,
            )

    def _targets(self, rows: torch.Tensor) -> Iterator[Any]:
        """Of the batches of these rows."""
        size = self.plan.batch_size
        if self.plan.loss in REGRESSIONS:
            return (self.labels[part] for part in rows.split(size))
        return self.labels.batches(rows, size)  # type: ignore[no-any-return]

    def _prune(self, epoch: int) -> None:
        plan = self.plan
        if plan.keep is None:
            return
        total = sum(self.parameters.weights[name].numel() for name in PRUNED)
        left = kept_after_epoch(plan.schedule, plan.keep, total, epoch, plan.warmup, plan.epochs)
        if left < total:
            prune(self.parameters, left)

    def _validate(self) -> float | None:
        """Minus the error of a regression, or the mean of precision at 1, 3 and 5."""
        if not len(self.valid):
            return None
        total = 0.0
        weights = self.parameters.weights
        for begin in range(0, len(self.valid), 512):
            part = self.valid[begin : begin + 512]
            batch = self.X.take(torch.tensor(part).to(self.device))
            z = all_logits(batch, weights, self.pool)
            if self.plan.loss in REGRESSIONS:
                squares = ((z.cpu().numpy() - self.raw_targets[part]) ** 2).sum(axis=1)
                total -= float((squares if self.plan.loss == "squared" else np.sqrt(squares)).sum())
            else:
                total += _precision(z, self.raw_targets[part])
        return total / len(self.valid)

    def _check_finite(self) -> None:
        if not all(torch.isfinite(array).all() for array in self.parameters.weights.values()):
            raise ValueError("training diverged: lower learning_rate")

    def _keep_best(self, epoch: int, value: float | None) -> None:
        plan = self.plan
        sparse_enough = plan.keep is None or self._left() <= plan.keep
        if value is None or not sparse_enough:
            self.best_epoch = epoch
        elif value > self.best_value:
            self.best_value, self.best_epoch = value, epoch
            self.best = self._arrays()

    def _left(self) -> int:
        masks = self.parameters.masks
        return sum(
            int(masks[name].sum()) if name in masks else self.parameters.weights[name].numel()
            for name in PRUNED
        )

    def _stopped(self) -> bool:
        pruned = self.plan.keep is None or self._left() <= self.plan.keep
        waited = len(self.history) - self.best_epoch
        return pruned and self.best is not None and waited >= self.plan.patience

    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: t.cpu().numpy().copy() for name, t in self.parameters.weights.items()}


def _initial(d: int, targets: Any, rows: np.ndarray, plan: Plan) -> dict[str, np.ndarray]:
    """Random weights, drawn by NumPy: the same on every device.

    Outputs begin at the prior log odds of their label (a regression: at the mean), so that the
    first epochs need not learn which labels are rare. A feature that few rows have keeps much of
    its first weights: a regression, which is stopped early, starts with small ones.
    """
    rng = np.random.default_rng([plan.seed, 3])
    outputs, h = targets.shape[1], plan.hidden
    if plan.loss in REGRESSIONS:
        b2 = np.asarray(targets[rows], dtype=np.float64).mean(axis=0)
    else:
        counts = np.asarray(targets[rows].sum(axis=0), dtype=np.float64).ravel()
        share = (counts + 0.5) / (len(rows) + 1)
        b2 = np.log(share)
        if plan.loss == "sigmoid":
            b2 -= np.log(np.maximum(1 - share, 1e-6))
    spread = np.float32(0.01 if plan.loss in REGRESSIONS else 0.1)
    return {
        "w1": rng.standard_normal((d, h), np.float32) * spread,
        "b1": np.zeros(h, np.float32),
        "w2": rng.standard_normal((outputs, h), np.float32) * np.float32(0.1 / np.sqrt(h)),
        "b2": b2.astype(np.float32),
    }


def _precision(z: torch.Tensor, Y: sp.csr_matrix) -> float:
    """Sum over rows of the mean precision at 1, 3 and 5."""
    k = min(max(KS), z.shape[1])
    ids = torch.topk(z, k, dim=1).indices.cpu().numpy()
    rows = np.repeat(np.arange(len(ids)), k)
    hits = np.asarray(Y[rows, ids.ravel()]).reshape(ids.shape)
    return float(sum(hits[:, :j].sum() / j for j in KS) / len(KS))
