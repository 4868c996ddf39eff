"""Finished repetitions of ``MACH`` in the folder of a checkpoint, trained here or by workers."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import scipy.sparse as sp

from longtail import persist
from longtail._native import n_threads
from longtail.codes.estimators import from_part
from longtail.codes.hash_code import HashCode
from longtail.codes.repetitions import fit_repetition, for_repetition, hashed
from longtail.data import Tokens
from longtail.distributed.shared import (
    Shared,
    put_matrix,
    put_rows,
    sharing,
    take_matrix,
    take_rows,
)
from longtail.distributed.tasks import Task, finish, workers
from longtail.linear.train.checkpoint import Checkpoint

__all__ = ["Repetition", "fit_kept"]


@dataclass(frozen=True)
class Repetition:
    """What one repetition is trained with, apart from the data."""

    number: int
    prototype: Any
    width: int | None
    feature_seed: int
    seed: int
    n_jobs: int | None
    checkpoint: str | None = None  # of all; a classifier that can has a folder of its own in it

    @property
    def name(self) -> str:
        return f"repetition{self.number}"

    @property
    def folder(self) -> str | None:
        """Where the classifier keeps its own checkpoint."""
        return None if self.checkpoint is None else f"{self.checkpoint}/training{self.number}"

    def fit(self, X: Any, Y: Any, code: HashCode) -> Any:
        """Return a fitted classifier of buckets."""
        threads = n_threads(self.n_jobs)
        return fit_repetition(
            for_repetition(self.prototype, self.number),
            hashed(X, self.width, self.feature_seed, threads),
            code.encode_repetition(Y, self.number),
            self.seed,
            self.n_jobs,
            self.folder,
        )


def fit_kept(
    repetitions: Sequence[Repetition], X: Any, Y: Any, code: HashCode, checkpoint: Checkpoint
) -> list[Any]:
    """Return fitted classifiers; those found in the checkpoint are not trained again.

    Inside ``joblib.parallel_config`` its workers train the others, with one thread each where
    ``n_jobs`` is None; those that read texts are trained here.
    """
    if workers() is not None and not isinstance(X, Tokens):
        _fit_elsewhere(repetitions, X, Y, code, checkpoint)
    fitted = []
    for repetition in repetitions:
        classifier = checkpoint.load(repetition.name, from_part)
        if classifier is None:
            classifier = repetition.fit(X, Y, code)
            _keep(checkpoint, repetition, classifier)
        fitted.append(classifier.set_params(n_jobs=repetition.n_jobs))
    return fitted


def _fit_elsewhere(
    repetitions: Sequence[Repetition], X: Any, Y: Any, code: HashCode, checkpoint: Checkpoint
) -> None:
    folder = checkpoint.path.absolute()
    shared = Shared(str(folder), checkpoint.problem)
    tasks = [
        Task(repetition.name, _fit, (shared, repetition))
        for repetition in repetitions
        if not (folder / repetition.name).is_dir()
    ]
    if not tasks:
        return
    data = persist.State("training-data", parts={"code": code._get_state()})
    put_rows(data, X)
    put_matrix(data, "labels", Y)
    with sharing(shared, {"data": data}):
        finish(tasks, folder, what="MACH")


def _fit(shared: Shared, repetition: Repetition, *, watch: Callable[[], None]) -> None:
    """Train one repetition, on a worker."""
    threads = 1 if repetition.n_jobs is None else repetition.n_jobs
    watch()
    classifier = replace(repetition, n_jobs=threads).fit(*_read(shared))
    _keep(Checkpoint(shared.folder, shared.problem), repetition, classifier)


def _keep(checkpoint: Checkpoint, repetition: Repetition, classifier: Any) -> None:
    """Save a finished repetition; what it kept while it was trained goes away."""
    checkpoint.save(repetition.name, classifier._get_state())
    if repetition.folder is not None:
        shutil.rmtree(repetition.folder, ignore_errors=True)


@functools.lru_cache(maxsize=1)
def _read(shared: Shared) -> tuple[Any, Any, HashCode]:
    state = shared.load("data")
    code = HashCode._from_state(state.parts["code"])
    return take_rows(state), take_matrix(state, "labels", sp.csr_matrix), code
