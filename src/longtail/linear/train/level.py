"""One level of training: which rows each parent sees, what they weigh, and the call to the core."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._blocks import BlockRows
from longtail._native import core, csr_args
from longtail.features.mapped_rows import is_mapped, scratch_array
from longtail.linear.search.layer import Layer
from longtail.linear.train.solver_options import SolverOptions

__all__ = [
    "LevelProblem",
    "all_rows",
    "as_weight",
    "by_column",
    "check_cost",
    "level_cost",
    "ones_of",
    "row_entries",
    "train_level",
    "training_rows",
]

Progress = Callable[[int, int], None] | None


@dataclass
class LevelProblem:
    """Binary problems of all children of one level.

    ``parents``: CSC (n, K_{t-1}) whose columns list the rows each parent trains on;
    ``parent_weight``: optional array beside ``parents.indices`` that multiplies the cost of a
    negative there; 0 for a row that only its positives train on;
    ``child_ptr`` (K_{t-1} + 1) int64: the consecutive children of each parent;
    ``positives``: CSC (n, K_t) of label values (soft targets or relevance);
    ``relevance``: optional array beside ``positives.data`` that multiplies the cost of a positive;
    ``positive_cost`` and ``negative_cost``: a number, or one per child;
    ``row_weight``: optional (n,) weight of every row;
    ``start``: optional weights (K_t, d) and biases that training begins with and is pulled to; the
    layer then holds the differences from them. Dual solver only;
    ``known``: optional (n,) rows and (positives,) positives, bool, that the start was trained on:
    training then goes on where that one ended, instead of counting those rows twice.
    """

    parents: sp.csc_matrix
    child_ptr: np.ndarray
    positives: sp.csc_matrix
    relevance: np.ndarray | None = None
    positive_cost: Any = 1.0
    negative_cost: Any = 1.0
    row_weight: np.ndarray | None = None
    parent_weight: np.ndarray | None = None
    start: tuple[sp.csr_matrix, np.ndarray] | None = None
    known: tuple[np.ndarray, np.ndarray] | None = None


def all_rows(n: int) -> sp.csc_matrix:
    """Return the rows of the root: every one."""
    return sp.csc_matrix((np.ones(n, np.float32), np.arange(n), [0, n]), shape=(n, 1))


def by_column(matrix: Any) -> sp.csc_matrix:
    """Return any sparse matrix as problems of a level want it: CSC, row numbers ascending."""
    out = matrix.tocsc()
    out.sort_indices()
    return out


def ones_of(matrix: sp.csc_matrix) -> sp.csc_matrix:
    """Return a matrix with 1 wherever this one has an entry."""
    ones = np.ones(matrix.nnz, np.float32)
    return sp.csc_matrix((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def training_rows(X: Any) -> Any:
    """Return canonical features as training wants them: CSR, or two blocks."""
    return X if sp.issparse(X) or isinstance(X, BlockRows) else sp.csr_matrix(X)


def row_entries(X: Any) -> np.ndarray:
    """Return numbers in each row that training reads, (n,)."""
    sparse, dense = (X.sparse, X.dense.shape[1]) if isinstance(X, BlockRows) else (X, 0)
    counts: np.ndarray = np.diff(sparse.indptr)
    return counts + dense


def train_level(
    X: Any,
    problem: LevelProblem,
    options: SolverOptions,
    *,
    seed: int,
    n_threads: int,
    first_child: int = 0,
    batch_bytes: int = 1 << 30,
    scratch_bytes: int = 1 << 62,
    folder: str | os.PathLike[str] | None = None,
    seats: Any = None,
    rank: int = 0,
    progress: Progress = None,
) -> Layer:
    """Solve every binary problem of a level; see ``cpp/kernels/linear/level_training.h``.

    Graded labels: hinge-like losses know no soft target, so a label value t in (0, 1) is a positive
    that costs t times as much, unless ``relevance`` says what it costs. To the logistic loss it is
    t positives and 1 - t negatives, each at its own cost; there t may exceed 1, as corrections for
    missing labels make it, while the two together cost more than nothing.

    Where ``X`` is mapped from a file, rows gathered for a parent go to a temporary file in
    ``folder`` if they are more than ``batch_bytes``. Fewer threads are started where all of them
    would need more than ``scratch_bytes``. ``seats``: a ``core.Seats`` that levels share which are
    trained at the same time; lower ranks come first.
    """
    sparse, dense = (X.sparse, X.dense) if isinstance(X, BlockRows) else (X, None)
    Y = problem.positives
    n_children = Y.shape[1]
    sizes = np.diff(Y.indptr)
    cost = np.repeat(_per_child(problem.positive_cost, n_children, "positive_cost"), sizes)
    against = _per_child(problem.negative_cost, n_children, "negative_cost")
    sign = None
    if options.loss == "logistic" and (Y.data != 1).any():
        cost, sign = _soft(Y.data, cost, np.repeat(against, sizes))
    if problem.relevance is not None:
        cost = cost * problem.relevance
    elif options.loss != "logistic":
        cost = cost * Y.data
    row_weight = None
    if problem.row_weight is not None:
        row_weight = np.ascontiguousarray(as_weight(problem.row_weight, "row_weight"))
        if row_weight.shape != (X.shape[0],):
            raise ValueError(f"row_weight must be one number per row, got {row_weight.shape}")
        cost = cost * row_weight[Y.indices]
    start, start_bias = problem.start or (None, None)
    known_row, known_positive = problem.known or (None, None)
    level = core.Level(
        X=csr_args(sparse),
        dense=dense,
        parent_ptr=_as(np.int64, problem.parents.indptr),
        parent_rows=_as(np.int32, problem.parents.indices),
        parent_weight=problem.parent_weight,
        child_ptr=_as(np.int64, problem.child_ptr),
        positive_ptr=_as(np.int64, Y.indptr),
        positive_rows=_as(np.int32, Y.indices),
        positive_sign=sign,
        positive_cost=_as(np.float32, cost),
        negative_cost=against,
        row_weight=row_weight,
        start=None if start is None else csr_args(start),
        start_bias=None if start_bias is None else _as(np.float32, start_bias),
        known_row=None if known_row is None else _as(np.uint8, known_row),
        known_positive=None if known_positive is None else _as(np.uint8, known_positive),
    )
    params = core.LevelParams(
        **options.native(),
        seed=seed,
        first_child=first_child,
        batch_bytes=batch_bytes,
        scratch_bytes=scratch_bytes,
        room=_room(sparse, problem.parents, batch_bytes, folder),
        seats=seats,
        rank=rank,
    )
    arrays, _ = core.train_level(level, params, n_threads, progress)
    return Layer(arrays)


def _soft(
    target: np.ndarray, positive: np.ndarray, negative: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cost and sign of ``positive t l(s, 1) + negative (1 - t) l(s, 0)`` as one logistic
    term.
    """
    plus = positive.astype(np.float64) * target
    cost = plus + negative * (1.0 - target.astype(np.float64))
    if (cost < 0).any():
        at = int(np.argmin(cost))
        raise ValueError(
            f"a corrected label (target {target[at]:g}) at a positive cost of {positive[at]:g} and "
            f"a negative cost of {negative[at]:g} is not convex: raise positive_weight to "
            "negative_weight, or use correction='surrogate'"
        )
    sign = np.divide(2.0 * plus, cost, out=np.full_like(cost, 2.0), where=cost > 0) - 1.0
    return cost, sign.astype(np.float32)


def _room(
    X: sp.csr_matrix, parents: sp.csc_matrix, batch_bytes: int, folder: Any
) -> np.ndarray | None:
    """Return a file for the rows of the largest parent, where memory is not the place for them."""
    if not is_mapped(X.data) or X.nnz == 0:
        return None
    before = np.concatenate([[0], np.cumsum(np.diff(X.indptr)[parents.indices], dtype=np.int64)])
    entries = np.diff(before[parents.indptr])
    rows = np.diff(parents.indptr)
    needed = max(
        (core.gathered_bytes(int(n), int(nnz)) for n, nnz in zip(rows, entries, strict=True)),
        default=0,
    )
    return scratch_array(needed, np.uint8, folder) if needed > batch_bytes else None


def check_cost(C: Any) -> None:
    """Refuse a cost that is not a positive, finite number, or one such number per level."""
    for each in [C] if np.ndim(C) == 0 else C:
        if not 0 < each < np.inf:
            raise ValueError(f"C must be positive and finite, got {C}")


def level_cost(C: Any, level: int, depth: int) -> float:
    """Return the cost of a level, out of one for all or one for each of them.

    >>> level_cost(0.5, 0, 3), level_cost([1, 1, 2], 2, 3)
    (0.5, 2.0)
    """
    if np.ndim(C) == 0:
        return float(C)
    if len(C) != depth:
        raise ValueError(f"C names {len(C)} levels, but the tree has {depth}")
    return float(C[level])


def as_weight(value: Any, name: str) -> np.ndarray:
    """Return a weight or an array of them as float32, refused if negative or not finite."""
    array = np.asarray(value, dtype=np.float32)
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError(f"{name} must be finite and not negative, got {value}")
    return array


def _per_child(value: Any, n_children: int, name: str) -> np.ndarray:
    array = as_weight(value, name)
    if array.ndim == 0:
        array = np.full(n_children, array, dtype=np.float32)
    if array.shape != (n_children,):
        raise ValueError(f"{name} must be a number or one per label, got shape {array.shape}")
    return np.ascontiguousarray(array)


def _as(dtype: Any, array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=dtype)
