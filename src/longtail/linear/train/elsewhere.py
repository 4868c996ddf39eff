"""Training the parts of levels by the workers of joblib, through the folder of a checkpoint.

What all parts need is written to the folder once: ``rows`` with the features as they are trained
on, ``<level>-problem`` with who trains on what. Workers map these files, cut out their part, train
it as a single machine would, and save it where ``train_in_parts`` looks for it. The shared files go
away in the end, finished parts stay.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import n_threads
from longtail.distributed.shared import (
    Shared,
    put_matrix,
    put_rows,
    sharing,
    take_matrix,
    take_rows,
)
from longtail.distributed.tasks import Task, finish
from longtail.linear.train.checkpoint import Checkpoint
from longtail.linear.train.level import LevelProblem, row_entries
from longtail.linear.train.memory import MemoryPlan
from longtail.linear.train.parts import Part, TrainingLevel, plan_parts, save_part, train_part
from longtail.linear.train.solver_options import SolverOptions

__all__ = ["train_elsewhere"]

_ROWS = "rows"
_MATRICES = ("parents", "positives")
_ARRAYS = (
    "child_ptr",
    "positive_cost",
    "negative_cost",
    "relevance",
    "row_weight",
    "parent_weight",
)


def train_elsewhere(
    X: Any,
    levels: Sequence[TrainingLevel],
    memory: MemoryPlan,
    checkpoint: Checkpoint,
    *,
    n_jobs: int | None,
) -> None:
    """Leave every part of ``levels`` in the checkpoint.

    ``n_jobs``: threads of a worker; None for one, as engines count cores by tasks.
    """
    folder = checkpoint.path.absolute()
    parts = {level.name: plan_parts(level.problem, row_entries(X)) for level in levels}
    shared = Shared(str(folder), checkpoint.problem)
    tasks = [
        Task(name, _train, (shared, level.name, part, memory, n_jobs))
        for level in levels
        for part in parts[level.name]
        if not (folder / (name := level.part_name(part))).is_dir()
    ]
    if not tasks:
        return
    rows = persist.State("training-rows")
    put_rows(rows, X)
    states = {_problem_name(level.name): _level_state(level) for level in levels}
    with sharing(shared, {_ROWS: rows, **states}):
        finish(tasks, folder, what=levels[-1].what.partition(",")[0])


def _train(
    shared: Shared,
    name: str,
    part: Part,
    memory: MemoryPlan,
    n_jobs: int | None,
    *,
    watch: Callable[[], None],
) -> None:
    """Train one part, on a worker."""
    X, level = _read_rows(shared), _read_level(shared, name)
    layer = train_part(
        X,
        level,
        part,
        memory,
        1 if n_jobs is None else n_threads(n_jobs),
        shared.folder,
        lambda done, total: watch(),
    )
    save_part(Checkpoint(shared.folder, shared.problem), level.part_name(part), layer)


def _problem_name(level: str) -> str:
    return f"{level}-problem"


@functools.lru_cache(maxsize=1)  # one training at a time, whose tasks map the rows once
def _read_rows(shared: Shared) -> Any:
    return take_rows(shared.load(_ROWS))


def _level_state(level: TrainingLevel) -> persist.State:
    problem = level.problem
    if problem.start is not None or problem.known is not None:
        raise ValueError("a level that begins with weights is trained where they are")
    about = {"what": level.what, "seed": str(level.seed)}  # 64 bits are more than JSON may hold
    state = persist.State("training-level", params=asdict(level.options), meta=about)
    for name in _MATRICES:
        put_matrix(state, name, getattr(problem, name))
    for name in _ARRAYS:
        value = getattr(problem, name)
        if value is not None:
            state.arrays[name] = np.asarray(value)
    return state


@functools.lru_cache(maxsize=8)
def _read_level(shared: Shared, name: str) -> TrainingLevel:
    state = shared.load(_problem_name(name))
    arrays = state.arrays
    parents, positives = (take_matrix(state, matrix, sp.csc_matrix) for matrix in _MATRICES)
    return TrainingLevel(
        name,
        state.meta["what"],
        LevelProblem(
            parents=parents,
            positives=positives,
            child_ptr=arrays["child_ptr"],
            positive_cost=arrays["positive_cost"],
            negative_cost=arrays["negative_cost"],
            relevance=arrays.get("relevance"),
            row_weight=arrays.get("row_weight"),
            parent_weight=arrays.get("parent_weight"),
        ),
        SolverOptions(**state.params),
        int(state.meta["seed"]),
    )
