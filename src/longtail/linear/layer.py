"""``Layer``: the weights of one tree level, in the layout that search reads and files hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist

__all__ = ["Layer"]

# Name → dtype of every array; cpp/kernels/chunk_layer.h tells what each holds.
_ARRAYS = {
    "parent_chunks": np.int64,
    "chunk_children": np.int64,
    "feature_ptr": np.int64,
    "entry_base": np.int64,
    "bucket_ptr": np.int64,
    "bucket_shift": np.uint8,
    "buckets": np.uint32,
    "features": np.int32,
    "entry_ptr": np.uint32,
    "child": np.uint16,
    "value": np.float32,
    "bias": np.float32,
}
_OFFSETS = ("chunk_children", "feature_ptr", "entry_base", "bucket_ptr")


class Layer:
    """Weights of all children of one level: parents to chunks to features to (child, weight).

    ``arrays`` by name, as in ``cpp/kernels/chunk_layer.h``. The native searcher checks that they
    fit together before it reads them.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    @property
    def n_children(self) -> int:
        return len(self.arrays["bias"])

    @property
    def n_weights(self) -> int:
        """Weights kept, without the biases."""
        return len(self.arrays["value"])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    def to_csr(self, n_features: int) -> sp.csr_matrix:
        """Weights as a CSR matrix (n_children, n_features + 1); the last column is the bias."""
        a = self.arrays
        rows, columns = [], []
        for chunk, first in enumerate(a["chunk_children"][:-1]):
            low, high = a["feature_ptr"][chunk : chunk + 2]
            offsets = a["entry_ptr"][low + chunk : high + chunk + 1].astype(np.int64)
            counts: Any = np.diff(offsets)
            columns.append(np.repeat(a["features"][low:high], counts))
            base, end = a["entry_base"][chunk : chunk + 2]
            rows.append(a["child"][base:end].astype(np.int64) + first)
        used = np.flatnonzero(a["bias"])
        row = np.concatenate([*rows, used])
        column = np.concatenate([*columns, np.full(len(used), n_features)])
        value = np.concatenate([a["value"], a["bias"][used]])
        shape = (self.n_children, n_features + 1)
        return sp.coo_matrix((value, (row, column)), shape=shape).tocsr()

    @classmethod
    def join(cls, layers: list[Layer], child_ptr: np.ndarray) -> Layer:
        """Layers of consecutive ranges of children as one, whose parents have ``child_ptr``.

        Takes the arrays out of ``layers``.
        """
        if len(layers) == 1:
            return layers[0]
        arrays: dict[str, np.ndarray] = {}
        for name in _ARRAYS:
            if name == "parent_chunks":
                continue
            pieces = [layer.arrays.pop(name) for layer in layers]  # never all of both in memory
            if name in _OFFSETS:  # each begins with 0 and ends with the length of what it cuts
                ends = np.cumsum([0, *(piece[-1] for piece in pieces)])
                pieces = [
                    piece[min(i, 1) :] + ends[i] for i, piece in enumerate(pieces)
                ]  # the first keeps its 0
            arrays[name] = np.concatenate(pieces)
        arrays["parent_chunks"] = np.searchsorted(arrays["chunk_children"], child_ptr).astype(
            np.int64
        )
        return cls({name: arrays[name] for name in _ARRAYS})

    def put_state(self, state: persist.State, prefix: str) -> None:
        for name, array in self.arrays.items():
            state.arrays[f"{prefix}_{name}"] = array

    @classmethod
    def from_state(cls, state: persist.State, prefix: str) -> Layer:
        return cls(
            {
                name: state.array(f"{prefix}_{name}", dtype, (None,))
                for name, dtype in _ARRAYS.items()
            }
        )

    def native(self) -> dict[str, Any]:
        return self.arrays
