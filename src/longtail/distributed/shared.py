"""Files that the tasks of one call read: where they are, and matrices in them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._blocks import BlockRows
from longtail.persist.siblings import remove

__all__ = ["Shared", "put_matrix", "put_rows", "sharing", "take_matrix", "take_rows"]


@dataclass(frozen=True)
class Shared:
    """The folder of a training, whose fingerprint is ``problem``.

    ``token`` tells the files of one call from those of another: workers outlive calls, and keep
    what they have mapped by it.
    """

    folder: str
    problem: str
    token: str = field(default_factory=lambda: secrets.token_hex(6))

    def load(self, name: str) -> persist.State:
        """Map one of the files."""
        return persist.load(Path(self.folder, name))


@contextmanager
def sharing(shared: Shared, states: dict[str, persist.State]) -> Iterator[None]:
    """Write states to the folder, by name, and remove them after the block."""
    folder = Path(shared.folder)
    try:
        for name, state in states.items():
            persist.save(folder / name, state, overwrite=True)
        yield
    finally:
        for name in states:
            if (folder / name).is_dir():
                remove(os.path.realpath(folder / name))


def put_rows(state: persist.State, X: Any) -> None:
    """Store rows: CSR, dense, or both."""
    if isinstance(X, BlockRows):
        state.arrays["dense"], X = X.dense, X.sparse
    if sp.issparse(X):
        put_matrix(state, "rows", X)
    else:
        state.arrays["dense"] = X


def take_rows(state: persist.State) -> Any:
    """Return the rows that ``put_rows`` stored, mapped."""
    dense = state.arrays.get("dense")
    if "rows_indptr" not in state.arrays:
        return dense
    rows = take_matrix(state, "rows", sp.csr_matrix)
    return rows if dense is None else BlockRows(rows, dense)


def put_matrix(state: persist.State, name: str, matrix: Any) -> None:
    """Store a compressed sparse matrix as it is."""
    state.meta[f"{name}_shape"] = [int(n) for n in matrix.shape]
    state.put_csr(name, (matrix.indptr, matrix.indices, matrix.data, matrix.shape[1]))


def take_matrix(state: persist.State, name: str, kind: Any) -> Any:
    """Return the mapped matrix, neither copied nor checked: the core looks at every index it is
    given.

    ``kind``: ``csr_matrix`` or ``csc_matrix``.
    """
    out = kind(tuple(state.meta[f"{name}_shape"]), dtype=np.float32)
    out.indptr, out.indices = state.arrays[f"{name}_indptr"], state.arrays[f"{name}_indices"]
    out.data = state.arrays[f"{name}_values"]
    out.has_sorted_indices = True
    return out
