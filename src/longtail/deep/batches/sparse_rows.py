"""Sparse rows on a device, taken in batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn.functional import embedding_bag

from longtail.deep.fused import sum_rows

__all__ = ["Batch", "SparseRows"]

_LOOK_AHEAD = 1 << 21  # entries that are prepared together


@dataclass
class Batch:
    """Entries of some rows of a sparse matrix, in order of row and in order of column.

    ``columns`` and ``values`` (nnz,), ``offsets`` (b,) where each row begins. ``by_column``: the
    same entries sorted by column, as their ``columns``, ``rows`` (the position in the batch) and
    ``values``. ``unique`` (u,) and ``firsts`` (u,): the columns that occur, and where the entries
    of each begin in that order. ``extra`` (nnz,): a second value of every entry, in the order of
    columns, where the matrix has one.
    """

    columns: torch.Tensor
    values: torch.Tensor
    offsets: torch.Tensor
    by_column: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    unique: torch.Tensor
    firsts: torch.Tensor
    extra: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def times(self, weights: torch.Tensor, rows: slice | None = None) -> torch.Tensor:
        """Return ``X W``, (b, h), or some of its rows: a sum of embeddings weighted by values."""
        return _sums(weights, self.columns, self.values, self.offsets, rows)

    def transposed_times(self, dense: torch.Tensor, some: slice | None = None) -> torch.Tensor:
        """Return ``X^T D`` where it is not zero: the rows ``unique`` of the product, (u, h), or
        some.

        The same sum of embeddings with the roles of rows and columns exchanged: no atomic adds, so
        the same bits on every run.
        """
        _, rows, values = self.by_column
        return _sums(dense, rows, values, self.firsts, some)


def _sums(
    matrix: torch.Tensor,
    index: torch.Tensor,
    values: torch.Tensor,
    offsets: torch.Tensor,
    bags: slice | None,
) -> torch.Tensor:
    """Return weighted sums of rows of a matrix: bag i has the entries from ``offsets[i]`` on."""
    if bags is not None:
        begin = int(offsets[bags.start])
        end = int(offsets[bags.stop]) if bags.stop < len(offsets) else len(index)
        index, values = index[begin:end], values[begin:end]
        offsets = offsets[bags] - begin
    if not len(index):
        return matrix.new_zeros(len(offsets), matrix.shape[1])
    return _sum_rows(matrix, index, offsets, values)


def _sum_rows(
    matrix: torch.Tensor, index: torch.Tensor, offsets: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    out = sum_rows(matrix, index, offsets, values)
    if out is None:
        out = embedding_bag(index, matrix, offsets, mode="sum", per_sample_weights=values)
    return out


class SparseRows:
    """A CSR matrix on a device; ``extra`` (nnz,) is a second value of every entry."""

    def __init__(self, matrix: Any, device: torch.device, extra: np.ndarray | None = None) -> None:
        matrix = sp.csr_matrix(matrix)

        def to(array: np.ndarray, dtype: Any) -> torch.Tensor:
            return torch.tensor(np.asarray(array, dtype=dtype)).to(device)

        self.width = max(1, matrix.shape[1])
        self.indptr = to(matrix.indptr, np.int64)
        self.columns = to(matrix.indices, np.int64)
        self.values = to(matrix.data, np.float32)
        self.extra = None if extra is None else to(extra, np.float32)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def arranged(self, order: np.ndarray, batch_size: int, seed: list[int]) -> np.ndarray:
        """Return the order as it is: rows of any length share a batch."""
        return order

    def by_length(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows in the order in which they are best encoded: as they are."""
        return rows

    def take(self, rows: torch.Tensor) -> Batch:
        """Return the rows with these numbers, in this order."""
        return next(self._prepared(rows, max(1, len(rows))))

    def batches(self, rows: torch.Tensor, batch_size: int) -> Iterator[Batch]:
        """Yield the rows with these numbers, so many at a time, in this order.

        Many batches are gathered and sorted at once and then cut up: on a GPU, a small network
        would otherwise spend most of a step on starting the kernels that prepare it.
        """
        entries = batch_size * len(self.columns) / max(1, len(self.indptr) - 1)
        block = batch_size * max(1, int(_LOOK_AHEAD / max(1.0, entries)))
        for begin in range(0, len(rows), block):
            yield from self._prepared(rows[begin : begin + block], batch_size)

    def _prepared(self, rows: torch.Tensor, batch_size: int) -> Iterator[Batch]:
        n, device = len(rows), rows.device
        starts = self.indptr[rows]
        lengths = self.indptr[rows + 1] - starts
        ends = torch.cumsum(lengths, 0)
        offsets = ends - lengths
        total = int(ends[-1]) if n else 0
        place = torch.arange(n, device=device)
        row = torch.repeat_interleave(place, lengths, output_size=total)
        position = torch.arange(total, device=device) + (starts - offsets)[row]
        columns, values = self.columns[position], self.values[position]

        batch = row // batch_size
        keys, order = torch.sort(batch * self.width + columns, stable=True)
        unique, counts = torch.unique_consecutive(keys, return_counts=True)
        unique_batch = unique // self.width
        by_column = (columns[order], (row - batch * batch_size)[order], values[order])
        extra = None if self.extra is None else self.extra[position][order]

        n_batches = max(1, -(-n // batch_size))
        number = torch.arange(n_batches + 1, device=device)
        entry_edges = torch.searchsorted(batch, number)
        firsts = torch.cumsum(counts, 0) - counts - entry_edges[unique_batch]
        offsets -= entry_edges[place // batch_size]
        unique -= unique_batch * self.width
        edges = torch.stack([entry_edges, torch.searchsorted(unique_batch, number)])
        of_entry, of_unique = edges.tolist()
        for i in range(n_batches):
            entry = slice(of_entry[i], of_entry[i + 1])
            column = slice(of_unique[i], of_unique[i + 1])
            yield Batch(
                columns[entry],
                values[entry],
                offsets[i * batch_size : (i + 1) * batch_size],
                (by_column[0][entry], by_column[1][entry], by_column[2][entry]),
                unique[column],
                firsts[column],
                None if extra is None else extra[entry],
            )
