"""What the training of a dual encoder will take, measured on a few batches of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from longtail.data.tokens import Tokens
from longtail.deep.batches.pair_feed import SCORES, PairFeed, hardest
from longtail.deep.batches.token_rows import TokenRows
from longtail.deep.training.cost import Cost
from longtail.deep.training.trainer import Trainer, own_randomness

__all__ = ["dual_cost"]

_BATCHES, _SAMPLE, _SEARCHED = 5, 4096, 256
_ROOM = 1.1  # batches differ


def dual_cost(
    trainer: Trainer,
    tokens: Tokens,
    label_tokens: Tokens,
    vectors: Callable[[TokenRows], torch.Tensor],
) -> Cost:
    """Return what an epoch takes, the mining before it included. Nothing is learned meanwhile."""
    device, output = torch.device(trainer.plan.device), trainer.output
    feed: Any = trainer.feed
    mined, on_gpu = feed.mined, device.type == "cuda"
    before = torch.cuda.memory_allocated(device) if on_gpu else 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    with own_randomness(device):
        try:
            count = min(feed.mining.negatives * feed.mining.period, feed.Y.shape[1])
            drawn = np.random.default_rng(0).integers(
                feed.Y.shape[1], size=(len(feed.rows), count), dtype=np.int32
            )
            feed.mined = drawn if count else None
            seconds = {"batches": _batches(trainer, feed)}
        finally:
            feed.mined = mined
            trainer.encoder.zero_grad(set_to_none=True)
            output.modules.zero_grad(set_to_none=True)  # type: ignore[attr-defined]
        peak = torch.cuda.max_memory_allocated(device) - before if on_gpu else 0
        if count:
            encoding = _encoding(tokens, vectors, device) + _encoding(label_tokens, vectors, device)
            width, searching = _searching(trainer, feed, vectors, label_tokens, device, count)
            every = feed.mining.period
            seconds[f"texts encoded, every {every} epochs"] = encoding
            seconds[f"labels searched, every {every} epochs"] = searching
    n_labels, n = feed.Y.shape[1], len(tokens)
    encoder = sum(p.numel() * (16 if p.requires_grad else 4) for p in trainer.encoder.parameters())
    heads = sum(16 * p.numel() for p in output.modules.parameters())  # type: ignore[attr-defined]
    memory = {"encoder, heads and their optimiser": encoder + heads}
    table = output.trained().get("table")
    if table is not None:
        memory["label vectors and their optimiser"] = 12 * table.numel()
    kept = [feed.queries, feed.labels]
    memory["texts"] = sum(4 * len(t.ids) + 16 * len(t) for t in kept)
    if on_gpu:
        memory["a batch"] = peak
    if count:
        scores = min(SCORES, n * n_labels)
        memory["mining"] = 4 * ((n + n_labels) * (width + trainer.encoder.width) + 2 * scores)  # type: ignore[operator]
    name = torch.cuda.get_device_name(device) if on_gpu else trainer.plan.device
    return Cost(name, memory, seconds, trainer.plan.epochs)


def _clock(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _batches(trainer: Trainer, feed: PairFeed) -> float:
    """Return the seconds of an epoch's batches: all of them, forward and backward."""
    device, step = torch.device(trainer.plan.device), trainer.step
    trainer.encoder.train()
    times = [_clock(device)]
    for number, (inputs, targets) in enumerate(feed.epoch(0)):
        made, h = step.forward(inputs, number)
        _, slope, _ = trainer.output.gradients(h, targets, trainer.objective)  # type: ignore[attr-defined]
        step.backward(inputs, made, slope, number)
        times.append(_clock(device))
        if number + 1 == _BATCHES:
            break
    spent = np.diff(times)
    usual = float(np.median(spent[1:])) if len(spent) > 1 else float(spent[0])
    first = max(0.0, float(spent[0]) - usual)  # choosing labels of all rows is part of it
    return first + _ROOM * usual * len(feed)


def _encoding(
    tokens: Tokens, vectors: Callable[[TokenRows], torch.Tensor], device: torch.device
) -> float:
    """Return the seconds of encoding all texts."""
    chosen = np.random.default_rng(0).permutation(len(tokens))[:_SAMPLE]
    some = tokens[np.sort(chosen)]
    rows = TokenRows(some, device)
    began = _clock(device)
    vectors(rows)
    spent = _clock(device) - began
    return _ROOM * spent * max(1, len(tokens.ids)) / max(1, len(some.ids))


def _searching(
    trainer: Trainer,
    feed: PairFeed,
    vectors: Callable[[TokenRows], torch.Tensor],
    label_tokens: Tokens,
    device: torch.device,
    count: int,
) -> tuple[int, float]:
    """Return how wide what is searched with is, and the seconds of searching for all rows."""
    output: Any = trainer.output
    h = vectors(TokenRows(label_tokens[: min(_SEARCHED, len(label_tokens))], device))
    queries = output.vectors(h, feed.mining.by)
    labels = torch.empty(feed.Y.shape[1], queries.shape[1], device=device).normal_()
    Y = feed.Y[feed.rows[: len(queries)]]
    queries = queries[: Y.shape[0]]
    hardest(queries, labels, Y, count)
    began = _clock(device)
    hardest(queries, labels, Y, count)
    spent = _clock(device) - began
    return queries.shape[1], _ROOM * spent * len(feed.rows) / max(1, len(queries))
