"""``Layer``: the weights of one tree level, in the layout that search reads and files hold."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._native import core, csr_args
from longtail.exceptions import ModelFormatError
from longtail.features.mapped_rows import scratch_array

__all__ = ["PRECISIONS", "Layer"]

# Name → dtype of every array; cpp/kernels/linear/chunk_layer.h tells what each holds.
_STRUCTURE = {
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
    "bias": np.float32,
}
# What weights are held in, by precision; bf16 is the upper half of a float32.
PRECISIONS: dict[str, dict[str, Any]] = {
    "float32": {"value": np.float32},
    "bf16": {"value_bf16": np.uint16},
    "int8": {"value_int8": np.int8, "step": np.float32},
}
_LARGE = 1 << 20  # bytes of an array that is worth a file
_OFFSETS = ("chunk_children", "feature_ptr", "entry_base", "bucket_ptr")


class Layer:
    """Weights of all children of one level: parents to chunks to features to (child, weight).

    ``arrays`` by name, as in ``cpp/kernels/linear/chunk_layer.h``. The native searcher checks that
    they fit together before it reads them, once: they are read-only from then on.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = {name: _frozen(array) for name, array in arrays.items()}

    @classmethod
    def from_csr(
        cls, weights: sp.csr_matrix, bias: np.ndarray, child_ptr: np.ndarray, n_threads: int = 1
    ) -> Layer:
        """Return weights (n_children, n_features) and biases; ``child_ptr`` cuts children by
        parent.
        """
        return cls(
            core.build_layer(
                csr_args(weights),
                np.ascontiguousarray(bias, np.float32),
                np.ascontiguousarray(child_ptr, np.int64),
                n_threads,
            )
        )

    @property
    def n_children(self) -> int:
        return len(self.arrays["bias"])

    @property
    def precision(self) -> str:
        """ "float32", "bf16" or "int8"."""
        return next(name for name, arrays in PRECISIONS.items() if set(arrays) <= set(self.arrays))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def child_ptr(self) -> np.ndarray:
        """int64 (n_parents + 1): the consecutive children of each parent."""
        return np.asarray(self.arrays["chunk_children"][self.arrays["parent_chunks"]])

    def chunk_entries(self, chunk: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return feature, child (counted from the chunk's first) and weight (float32) of every
        entry.
        """
        a = self.arrays
        low, high = a["feature_ptr"][chunk : chunk + 2]
        base, end = a["entry_base"][chunk : chunk + 2]
        offsets = a["entry_ptr"][low + chunk : high + chunk + 1].astype(np.int64)
        counts: Any = np.diff(offsets)
        child, value = self._children_and_weights(chunk, slice(base, end))
        return np.repeat(a["features"][low:high], counts), child, value

    def entries_of(
        self, chunk: int, features: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the same for the entries of some features (ascending) only, without reading the
        rest.
        """
        a = self.arrays
        low, high = a["feature_ptr"][chunk : chunk + 2]
        have = a["features"][low:high]
        slot = np.searchsorted(have, features)
        slot = slot[slot < len(have)]
        slot = slot[have[slot] == features[: len(slot)]]
        offsets = a["entry_ptr"][low + chunk : high + chunk + 1]
        first, counts = offsets[slot].astype(np.int64), (offsets[slot + 1] - offsets[slot])
        counts = counts.astype(np.int64)
        before = np.cumsum(counts) - counts
        at = np.repeat(first - before, counts) + np.arange(counts.sum())
        child, value = self._children_and_weights(chunk, a["entry_base"][chunk] + at)
        return np.repeat(have[slot], counts), child, value

    def _children_and_weights(self, chunk: int, at: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of the entries ``at``: the child, counted from the chunk's first, and the weight."""
        a = self.arrays
        child = a["child"][at]
        if "value_int8" in a:
            steps = a["step"][a["chunk_children"][chunk] + child.astype(np.int64)]
            return child, a["value_int8"][at] * steps
        if "value_bf16" in a:
            return child, (a["value_bf16"][at].astype(np.uint32) << 16).view(np.float32)
        return child, a["value"][at]

    def weights(self, n_features: int) -> sp.csr_matrix:
        """Return the weights, CSR (n_children, n_features) float32, without the biases."""
        floats = self.with_precision("float32")
        indptr, indices, values = core.layer_weights(floats.arrays, n_features)
        return sp.csr_matrix((values, indices, indptr), shape=(self.n_children, n_features))

    def to_csr(self, n_features: int) -> sp.csr_matrix:
        """Return weights as a CSR matrix (n_children, n_features + 1); the last column is the
        bias.
        """
        bias = sp.csr_matrix(self.arrays["bias"][:, None])
        return sp.hstack([self.weights(n_features), bias], format="csr")

    def with_precision(self, precision: str) -> Layer:
        """Return the same weights, rounded to the nearest that ``precision`` can hold.

        int8 counts steps of a label's own size, its largest weight over 127.
        """
        if precision == self.precision:
            return self
        chunks = range(len(self.arrays["chunk_children"]) - 1)
        entries = [self.chunk_entries(chunk) for chunk in chunks]
        firsts = self.arrays["chunk_children"]
        none = np.zeros(0, np.float32)
        value = np.concatenate([none, *(value for _, _, value in entries)])
        arrays = {name: self.arrays[name] for name in _STRUCTURE}
        if precision == "float32":
            arrays["value"] = value
        elif not np.isfinite(value).all():
            raise ValueError(f"weights that are not finite cannot be held as {precision}")
        elif precision == "bf16":
            bits = value.view(np.uint32)
            even = (bits >> 16) & 1  # ties go to the even one
            arrays["value_bf16"] = ((bits + np.uint32(0x7FFF) + even) >> 16).astype(np.uint16)
        elif precision == "int8":
            where = [np.zeros(0, np.int64)]
            where += [child + firsts[chunk] for chunk, (_, child, _) in enumerate(entries)]
            owner = np.concatenate(where)
            largest = np.zeros(self.n_children, np.float32)
            np.maximum.at(largest, owner, np.abs(value))
            step = np.where(largest > 0, largest / 127, 1).astype(np.float32)
            arrays["value_int8"] = np.rint(value / step[owner]).astype(np.int8)
            arrays["step"] = step
        else:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
        return Layer(arrays)

    def spilled(self, folder: str | os.PathLike[str] | None) -> Layer:
        """Return the same layer with its large arrays in a temporary file in ``folder``."""
        large = [name for name, array in self.arrays.items() if array.nbytes >= _LARGE]
        ends = np.cumsum([0, *(-(-self.arrays[name].nbytes // 64) * 64 for name in large)])
        file = scratch_array(int(ends[-1]), np.uint8, folder)
        arrays = dict(self.arrays)
        for name, begin in zip(large, ends, strict=False):
            array = arrays[name]
            arrays[name] = file[begin : begin + array.nbytes].view(array.dtype)
            arrays[name][:] = array
        return Layer(arrays)

    @classmethod
    def join(
        cls,
        layers: list[Layer],
        child_ptr: np.ndarray,
        *,
        spill: bool = False,
        folder: str | os.PathLike[str] | None = None,
    ) -> Layer:
        """Return layers of consecutive ranges of children as one, whose parents have ``child_ptr``.

        Takes the arrays out of ``layers``. ``spill``: large arrays go to temporary files.
        """
        if len(layers) == 1:
            return layers[0]
        arrays: dict[str, np.ndarray] = {}
        for name in list(layers[0].arrays):
            if name == "parent_chunks":
                continue
            pieces = [layer.arrays.pop(name) for layer in layers]  # never all of both in memory
            if name in _OFFSETS:  # each begins with 0 and ends with the length of what it cuts
                ends = np.cumsum([0, *(piece[-1] for piece in pieces)])
                pieces = [piece[min(i, 1) :] + ends[i] for i, piece in enumerate(pieces)]
            arrays[name] = _joined(pieces, folder) if spill else np.concatenate(pieces)
        chunks = np.searchsorted(arrays["chunk_children"], child_ptr)
        arrays["parent_chunks"] = chunks.astype(np.int64)
        return cls(arrays)

    def put_state(self, state: persist.State, prefix: str) -> None:
        for name in (*_STRUCTURE, *PRECISIONS[self.precision]):
            state.arrays[f"{prefix}_{name}"] = self.arrays[name]

    @classmethod
    def from_state(cls, state: persist.State, prefix: str) -> Layer:
        for names in PRECISIONS.values():
            if all(f"{prefix}_{name}" in state.arrays for name in names):
                wanted = {**_STRUCTURE, **names}
                return cls(
                    {
                        name: state.array(f"{prefix}_{name}", dtype, (None,))
                        for name, dtype in wanted.items()
                    }
                )
        raise ModelFormatError(f"array '{prefix}_value' is missing")

    def native(self) -> dict[str, Any]:
        return self.arrays


def _frozen(array: np.ndarray) -> np.ndarray:
    """Return the same memory, not to be written through."""
    view: np.ndarray = array.view()
    view.flags.writeable = False
    return np.asarray(view)


def _joined(pieces: list[np.ndarray], folder: str | os.PathLike[str] | None) -> np.ndarray:
    """Return arrays one after the other, in a temporary file if they are large together.

    Empties ``pieces`` as it goes.
    """
    size = sum(len(piece) for piece in pieces)
    if size * pieces[0].itemsize < _LARGE:
        return np.concatenate(pieces)
    out = scratch_array(size, pieces[0].dtype, folder)
    at = 0
    while pieces:
        piece = pieces.pop(0)
        out[at : at + len(piece)] = piece
        at += len(piece)
    return out
