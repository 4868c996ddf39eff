"""``train_levels``: levels that do not wait for one another, here or by the workers of joblib."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from longtail._native import core, n_threads
from longtail.distributed.tasks import workers
from longtail.linear.search.layer import Layer
from longtail.linear.train.checkpoint import Checkpoint
from longtail.linear.train.elsewhere import train_elsewhere
from longtail.linear.train.memory import MemoryPlan
from longtail.linear.train.parts import TrainingLevel, train_in_parts

__all__ = ["train_levels"]


def train_levels(
    X: Any,
    levels: Sequence[TrainingLevel],
    memory: MemoryPlan,
    *,
    n_jobs: int | None,
    checkpoint: Checkpoint | None,
    spill: bool = False,
) -> list[Layer]:
    """Train some levels and return their layers.

    An upper level has few blocks of labels and cannot feed many threads by itself, so levels are
    trained side by side, the tasks of upper ones first. ``spill``: one at a time, and finished
    parts go to temporary files. With a ``checkpoint`` and workers of joblib, those train the parts
    that it lacks.
    """
    if checkpoint is not None and workers() is not None:
        train_elsewhere(X, levels, memory, checkpoint, n_jobs=n_jobs)
    threads, stop = n_threads(n_jobs), threading.Event()
    in_turn = threads == 1 or spill or len(levels) == 1
    seats = None if in_turn else core.Seats(threads, len(levels))

    def train(level: TrainingLevel, rank: int) -> Layer:
        return train_in_parts(
            X,
            level,
            memory,
            n_threads=threads,
            checkpoint=checkpoint,
            spill=spill,
            stop=stop,
            seats=seats,
            rank=rank,
        )

    if in_turn:
        return [train(level, 0) for level in levels]
    with ThreadPoolExecutor(len(levels)) as pool:
        try:  # Ctrl-C reaches this thread only, which stops the others
            running = [pool.submit(train, level, rank) for rank, level in enumerate(levels)]
            while wait(running, timeout=0.1, return_when=FIRST_EXCEPTION).not_done:
                failed = [task for task in running if task.done() and task.exception()]
                if failed:
                    break
        finally:
            stop.set()  # those that are done do not care
        for task in running:
            error = task.exception()
            if error is not None and not isinstance(error, KeyboardInterrupt):
                raise error
        return [task.result() for task in running]
