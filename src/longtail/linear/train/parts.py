"""Training a level in parts: ranges of its children, each one call to the core.

A part is a range of parents with all their children or, where one parent has very many, a range of
its children; ranges end where chunks end (``cpp/kernels/linear/chunk_layer.h``). Seeds belong to
blocks of siblings, not to calls, so parts put together are the level trained at once, bit by bit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from longtail import persist
from longtail._progress import Progress
from longtail.linear.search.layer import Layer
from longtail.linear.train.checkpoint import Checkpoint
from longtail.linear.train.level import LevelProblem, row_entries, train_level
from longtail.linear.train.memory import MemoryPlan
from longtail.linear.train.solver_options import SolverOptions

__all__ = ["Part", "TrainingLevel", "plan_parts", "save_part", "train_in_parts", "train_part"]

CHUNK = 4096  # children; kMaxChunk of the core
_MOST_PARTS = 64  # per level: so much is lost at most when a run is cut short


@dataclass(frozen=True)
class TrainingLevel:
    """A level to train: its ``name`` in checkpoints, and ``what`` it is called while it runs."""

    name: str
    what: str
    problem: LevelProblem
    options: SolverOptions
    seed: int

    def part_name(self, part: Part) -> str:
        return f"{self.name}-{part.first}"


@dataclass(frozen=True)
class Part:
    """Children ``first .. last`` of the parents ``top .. bottom`` (ends excluded)."""

    top: int
    bottom: int
    first: int
    last: int


def plan_parts(
    problem: LevelProblem, row_nnz: np.ndarray, n_parts: int = _MOST_PARTS
) -> list[Part]:
    """Return about ``n_parts`` ranges of equal work: children times entries of their parent's rows.

    A part holds whole parents, or chunks of a single large one.
    """
    pieces = list(_pieces(problem, row_nnz))
    share = sum(work for _, work in pieces) / max(n_parts, 1)
    parts: list[Part] = []
    load = share
    for piece, work in pieces:
        last = parts[-1] if parts else None
        if last is not None and load < share and _join(last, piece, problem.child_ptr):
            parts[-1] = Part(last.top, piece.bottom, last.first, piece.last)
            load += work
        else:
            parts.append(piece)
            load = work
    return parts


def _pieces(problem: LevelProblem, row_nnz: np.ndarray) -> Iterator[tuple[Part, float]]:
    """Whole parents, or chunks of those with more children than a chunk, and the work of each."""
    rows = problem.parents
    before = np.concatenate([[0], np.cumsum(row_nnz[rows.indices], dtype=np.int64)])
    entries = np.diff(before[rows.indptr])
    for parent, (first, end) in enumerate(pairwise(problem.child_ptr.tolist())):
        for begin in range(first, max(end, first + 1), CHUNK):
            last = min(begin + CHUNK, end)
            yield Part(parent, parent + 1, begin, last), (last - begin) * (entries[parent] + 1.0)


def _join(part: Part, piece: Part, child_ptr: np.ndarray) -> bool:
    if part.bottom == piece.bottom:
        return True
    return bool(part.first == child_ptr[part.top] and piece.last == child_ptr[piece.bottom])


def train_in_parts(
    X: Any,
    level: TrainingLevel,
    memory: MemoryPlan,
    *,
    n_threads: int,
    checkpoint: Checkpoint | None,
    spill: bool = False,
    stop: threading.Event | None = None,
    seats: Any = None,
    rank: int = 0,
) -> Layer:
    """Train a level and return its layer; with a ``checkpoint``, parts found there are not trained
    again.

    ``spill``: large arrays of finished parts, and of the layer in the end, are those of temporary
    files (in the folder of the checkpoint, if there is one). Once ``stop`` is set, training ends
    with a KeyboardInterrupt. ``seats`` and ``rank``: as in ``train_level``.
    """
    problem = level.problem
    n_children = int(problem.child_ptr[-1])
    with Progress(level.what, stop=stop) as progress:
        shared = {"seats": seats, "rank": rank}
        if checkpoint is None and not spill:
            return train_level(
                X,
                problem,
                level.options,
                seed=level.seed,
                n_threads=n_threads,
                batch_bytes=memory.batch_bytes,
                scratch_bytes=memory.scratch_bytes,
                progress=progress,
                **shared,
            )
        folder = None if checkpoint is None else checkpoint.path
        layers = []
        for part in plan_parts(problem, row_entries(X)):
            name = level.part_name(part)
            layer = None if checkpoint is None else checkpoint.load(name, _read_layer)
            if layer is None:
                shifted = _shifted(progress, part, n_children)
                layer = train_part(X, level, part, memory, n_threads, folder, shifted, **shared)
                if checkpoint is not None:
                    save_part(checkpoint, name, layer)
            layers.append(layer.spilled(folder) if spill else layer)
            progress(part.last, n_children)  # parts may be too short for the core to report any
    return Layer.join(layers, np.asarray(problem.child_ptr), spill=spill, folder=folder)


def train_part(
    X: Any,
    level: TrainingLevel,
    part: Part,
    memory: MemoryPlan,
    n_threads: int,
    folder: str | os.PathLike[str] | None,
    progress: Callable[[int, int], None],
    seats: Any = None,
    rank: int = 0,
) -> Layer:
    """Train one part of a level and return its layer."""
    return train_level(
        X,
        cut(level.problem, part),
        level.options,
        seed=level.seed,
        first_child=part.first,
        n_threads=n_threads,
        batch_bytes=memory.batch_bytes,
        scratch_bytes=memory.scratch_bytes,
        folder=folder,
        seats=seats,
        rank=rank,
        progress=progress,
    )


def save_part(checkpoint: Checkpoint, name: str, layer: Layer) -> None:
    """Keep a finished part, for ``train_in_parts`` to find."""
    saved = persist.State("linear-part", {})
    layer.put_state(saved, "layer")
    checkpoint.save(name, saved)


def _read_layer(saved: persist.State) -> Layer:
    return Layer.from_state(saved, "layer")


def cut(problem: LevelProblem, part: Part) -> LevelProblem:
    """Return the part of a level as a level of its own."""
    parents, positives = problem.parents, problem.positives
    begin, end = (int(positives.indptr[child]) for child in (part.first, part.last))

    def of_child(value: Any) -> Any:
        return value if np.ndim(value) == 0 else np.asarray(value)[part.first : part.last]

    inner = np.clip(problem.child_ptr[part.top : part.bottom + 1], part.first, part.last)
    relevance, start, weight = problem.relevance, problem.start, problem.parent_weight
    if weight is not None:
        weight = weight[parents.indptr[part.top] : parents.indptr[part.bottom]]
    if start is not None:
        start = tuple(of_children[part.first : part.last] for of_children in start)  # type: ignore
    return replace(
        problem,
        parents=parents[:, part.top : part.bottom],
        parent_weight=weight,
        child_ptr=inner - part.first,
        positives=positives[:, part.first : part.last],
        relevance=None if relevance is None else relevance[begin:end],
        positive_cost=of_child(problem.positive_cost),
        negative_cost=of_child(problem.negative_cost),
        start=start,
    )


def _shifted(progress: Progress, part: Part, total: int) -> Any:
    return lambda done, _: progress(part.first + done, total)
