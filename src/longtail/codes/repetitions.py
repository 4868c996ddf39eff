"""What a repetition of ``MACH`` is trained on and with: its number, seeds, features, folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._native import core
from longtail.base import unfitted

__all__ = ["checkpoint_of", "fit_repetition", "for_repetition", "hashed", "numbers", "seeds"]


def numbers(repetitions: Iterable[int] | None, count: int) -> list[int]:
    """Return numbers of the repetitions to train, ascending."""
    wanted = range(count) if repetitions is None else list(repetitions)
    if not all(isinstance(r, Integral) and not isinstance(r, bool) for r in wanted):
        raise TypeError(f"repetitions must be whole numbers, got {wanted!r}")
    out = sorted({int(r) for r in wanted})
    if not out or out[0] < 0 or out[-1] >= count:
        raise ValueError(f"repetitions must lie between 0 and {count - 1}, got {out}")
    return out


def seeds(seed: int, purpose: int, count: int) -> np.ndarray:
    """Return a seed per repetition, below 2^32; those of the first r do not depend on how many."""
    drawn = [np.random.SeedSequence([seed, purpose, r]).generate_state(1) for r in range(count)]
    return np.concatenate(drawn)


def for_repetition(prototype: Any, repetition: int) -> Any:
    """Return an unfitted copy; its checkpoint, if any, in a folder of its own inside the one
    named.
    """
    classifier = unfitted(prototype)
    folder = classifier.get_params(deep=False).get("checkpoint")
    if folder is not None:
        classifier.set_params(checkpoint=os.path.join(folder, f"repetition{repetition}"))
    return classifier


def fit_repetition(
    classifier: Any, X: Any, targets: Any, seed: int, n_jobs: int | None, folder: str | None
) -> Any:
    """Fit the classifier of one repetition, which keeps a checkpoint in ``folder`` if it can."""
    classifier.set_params(random_state=seed, n_jobs=n_jobs)
    return classifier.fit(X, targets, **checkpoint_of(classifier.fit, folder))


def checkpoint_of(fit: Any, folder: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Return the option ``checkpoint`` for a method that takes it and a folder that is given."""
    takes = folder is not None and "checkpoint" in signature(fit).parameters
    return {"checkpoint": folder} if takes else {}


def hashed(X: Any, width: int | None, seed: int, threads: int) -> Any:
    """Return features put into ``width`` places by a hash; those that share a place are added."""
    if width is None:
        return X
    X = X if sp.issparse(X) else sp.csr_matrix(X)
    place = core.hash_labels(0, X.shape[1], np.array([seed], np.uint32), int(width), threads)[:, 0]
    arrays = (X.data.copy(), place[X.indices], X.indptr.copy())  # summing changes them
    out = sp.csr_matrix(arrays, shape=(X.shape[0], int(width)))
    out.sum_duplicates()
    return out
