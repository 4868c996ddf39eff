"""Sparse rows on a device, taken in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn.functional import embedding_bag

from longtail.deep.fused import sum_rows

__all__ = ["Batch", "SparseRows"]


@dataclass
class Batch:
    """Entries of some rows of a sparse matrix, row by row.

    ``columns`` and ``values`` (nnz,), ``rows`` (nnz,) the position in the batch, ``offsets`` (b,)
    where each row begins.
    """

    columns: torch.Tensor
    values: torch.Tensor
    rows: torch.Tensor
    offsets: torch.Tensor

    def times(self, weights: torch.Tensor) -> torch.Tensor:
        """``X W``, (b, h): a sum of embeddings, weighted by the values."""
        if not len(self.columns):
            return weights.new_zeros(len(self.offsets), weights.shape[1])
        return _sum_rows(weights, self.columns, self.offsets, self.values)

    def transposed_times(self, dense: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """``X^T D`` where it is not zero: the columns that occur, (u,), and their rows of the
        product, (u, h).

        The same sum of embeddings with the roles of rows and columns exchanged: no atomic adds, so
        the same bits on every run.
        """
        if not len(self.columns):
            return self.columns, dense.new_zeros(0, dense.shape[1])
        columns, order = torch.sort(self.columns, stable=True)
        unique, counts = torch.unique_consecutive(columns, return_counts=True)
        offsets = torch.cumsum(counts, 0) - counts
        return unique, _sum_rows(dense, self.rows[order], offsets, self.values[order])


def _sum_rows(
    matrix: torch.Tensor, index: torch.Tensor, offsets: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Sums of rows of a matrix, weighted: bag i has the entries from ``offsets[i]`` on."""
    out = sum_rows(matrix, index, offsets, values)
    if out is None:
        out = embedding_bag(index, matrix, offsets, mode="sum", per_sample_weights=values)
    return out


class SparseRows:
    """A CSR matrix on a device."""

    def __init__(self, matrix: Any, device: torch.device) -> None:
        matrix = sp.csr_matrix(matrix)

        def to(array: np.ndarray, dtype: Any) -> torch.Tensor:
            return torch.tensor(np.asarray(array, dtype=dtype)).to(device)

        self.indptr = to(matrix.indptr, np.int64)
        self.columns = to(matrix.indices, np.int64)
        self.values = to(matrix.data, np.float32)

    def take(self, rows: torch.Tensor) -> Batch:
        """The rows with these numbers, in this order."""
        starts = self.indptr[rows]
        lengths = self.indptr[rows + 1] - starts
        ends = torch.cumsum(lengths, 0)
        offsets = ends - lengths
        total = int(ends[-1]) if len(ends) else 0
        place = torch.arange(len(rows), device=rows.device)
        of_entry = torch.repeat_interleave(place, lengths, output_size=total)
        position = torch.arange(total, device=rows.device) + (starts - offsets)[of_entry]
        return Batch(self.columns[position], self.values[position], of_entry, offsets)
