"""Answers from trained output weights as they are stored: 32, 16 or 8 bits, or a few per label.

None of them makes a dense float32 copy of what is not float32. Torch is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from longtail import persist
from longtail._native import core
from longtail._products import PackedRows, times_dense
from longtail.deep.output_plan import PARAMETERS
from longtail.exceptions import ModelFormatError

__all__ = ["FanInRows", "OutputArrays", "ShortRows", "rounded"]

_SHORT = {"float32": np.float32, "bfloat16": np.uint16, "float8": np.uint8}


class ShortRows:
    """Weights (L, e) of 16 bits (bfloat16, as uint16) or 8 bits (E4M3, as uint8)."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = np.ascontiguousarray(rows)

    def top(
        self, queries: np.ndarray, k: int, n_threads: int, bias: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and values (n, k) of the k largest ``<query, row> + bias``."""
        return core.top_short_rows(self.rows, bias, queries, k, n_threads)  # type: ignore[no-any-return]

    def products(
        self, queries: np.ndarray, n_threads: int, bias: np.ndarray | None = None
    ) -> np.ndarray:
        """Return all of them, (n, L)."""
        return core.short_products(self.rows, bias, queries, n_threads)  # type: ignore[no-any-return]


class FanInRows:
    """``values`` (f, L) float32 and ``index`` (f, L) uint16 or int32: label j reads the inputs
    ``index[:, j]`` of ``n_inputs``.
    """

    def __init__(self, values: np.ndarray, index: np.ndarray, n_inputs: int) -> None:
        self.n_labels = values.shape[1]
        self.layer = core.FanInLayer(
            np.ascontiguousarray(values), np.ascontiguousarray(index), n_inputs
        )

    def top(
        self, queries: np.ndarray, k: int, n_threads: int, bias: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and scores (n, k) of the k best labels."""
        return self.layer.top(bias, queries, k, n_threads)  # type: ignore[no-any-return]

    def products(
        self, queries: np.ndarray, n_threads: int, bias: np.ndarray | None = None
    ) -> np.ndarray:
        """Return all scores, (n, L)."""
        return self.layer.scores(bias, queries, 0, self.n_labels, n_threads)  # type: ignore[no-any-return]


def rounded(values: np.ndarray, precision: str) -> np.ndarray:
    """Return float32 numbers as they are kept in a precision, each the nearest.

    >>> rounded(np.array([1.0, -2.0, 1000.0], np.float32), "float8")
    array([ 56, 192, 126], dtype=uint8)
    """
    values = np.ascontiguousarray(values, np.float32)
    if precision == "bfloat16":
        bits = values.view(np.uint32)
        near: np.ndarray = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return near
    if precision == "float8":
        codes = np.arange(0x7F, dtype=np.uint32)
        numbers = (codes << 20).view(np.float32) * np.float32(2.0**120)
        between = (numbers[1:] + numbers[:-1]) / 2
        found = np.searchsorted(between, np.abs(values)).astype(np.uint8)
        signed: np.ndarray = np.where(values < 0, found | 0x80, found).astype(np.uint8)
        return signed
    return values


@dataclass(frozen=True)
class OutputArrays:
    """What training leaves of an output layer.

    ``weights`` (L, e), float32, bfloat16 as uint16 or E4M3 as uint8; ``bias`` (L,). Of a fixed
    fan-in layer, ``weights`` (f, L) float32 and ``index`` (f, L); ``hidden``: weights (h, e) and
    bias (h,) of the wide layer it may have in front, ``width`` that of the vectors.
    """

    weights: np.ndarray
    bias: np.ndarray
    index: np.ndarray | None = None
    hidden: tuple[np.ndarray, np.ndarray] | None = None
    width: int = 0

    def rows(self, ids: np.ndarray | None = None) -> Any:
        """Return what answers from all labels, or from some: it has ``top`` and ``products``."""
        if self.index is not None:
            values, index = self.weights, self.index
            if ids is not None:
                values, index = values[:, ids], index[:, ids]
            inputs = self.width if self.hidden is None else len(self.hidden[1])
            return FanInRows(values, index, inputs)
        weights = self.weights if ids is None else self.weights[ids]
        return PackedRows(weights) if weights.dtype == np.float32 else ShortRows(weights)

    def active(self, vectors: np.ndarray, n_threads: int) -> np.ndarray:
        """Return the vectors as the weights read them: through the hidden layer, if there is."""
        if self.hidden is None:
            return vectors
        weights, bias = self.hidden
        return times_dense(vectors, weights.T, n_threads, bias=bias, relu=True)

    def joined(self, weights: np.ndarray, bias: np.ndarray) -> OutputArrays:
        """Return the arrays with further labels behind them: float32 ``weights`` (m, inputs),
        rounded to the bits of the others, or the largest of each label where they are few.
        """
        both = np.concatenate([self.bias, bias])
        if self.index is None:
            rows = rounded(weights, self.precision)
            return replace(self, weights=np.concatenate([self.weights, rows]), bias=both)
        f = len(self.weights)
        kept = np.argsort(-np.abs(weights), axis=1, kind="stable")[:, :f]
        values = np.take_along_axis(weights, kept, axis=1).T
        return replace(
            self,
            weights=np.concatenate([self.weights, values], axis=1),
            bias=both,
            index=np.concatenate([self.index, kept.T.astype(self.index.dtype)], axis=1),
        )

    @property
    def precision(self) -> str:
        """Return the name of what the weights are kept in."""
        return next(name for name, kind in _SHORT.items() if self.weights.dtype == kind)

    def put(self, state: persist.State) -> None:
        """Store the arrays in the state of a model; parameters of the output layer that are not
        used are left out, as in files from before there were any.
        """
        for name in PARAMETERS:
            if state.params.get(name) is None:
                state.params.pop(name, None)
        state.arrays.update(output_weights=self.weights, output_bias=self.bias)
        if self.precision != "float32":
            state.meta["output_precision"] = self.precision
        if self.index is not None:
            state.arrays["output_index"] = self.index
        if self.hidden is not None:
            state.arrays.update(hidden_weights=self.hidden[0], hidden_bias=self.hidden[1])

    @classmethod
    def take(cls, state: persist.State, n_labels: int, width: int) -> OutputArrays:
        """Return what ``put`` stored for vectors of a ``width``; refuses what does not fit."""
        bias = state.array("output_bias", np.float32, (n_labels,))
        hidden = None
        if "hidden_weights" in state.arrays:
            above = state.array("hidden_weights", np.float32, (None, width))
            hidden = above, state.array("hidden_bias", np.float32, above.shape[:1])
        if "output_index" in state.arrays:
            inputs = width if hidden is None else len(hidden[1])
            values = state.array("output_weights", np.float32, (None, n_labels))
            kind = np.uint16 if inputs <= 1 << 16 else np.int32
            index = state.array("output_index", kind, values.shape)
            if index.size and not 0 <= index.min() <= index.max() < inputs:
                raise ModelFormatError(
                    f"output_index must lie from 0 on, below {inputs}, got {index.max()}"
                )
            return cls(values, bias, index, hidden, width)
        precision = state.meta.get("output_precision", "float32")
        if precision not in _SHORT or hidden is not None:
            raise ModelFormatError(f"there are no output weights of precision {precision!r}")
        weights = state.array("output_weights", _SHORT[precision], (n_labels, width))
        return cls(weights, bias)
