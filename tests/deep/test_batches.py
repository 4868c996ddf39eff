"""Batches of sparse rows, and the chunks of outputs a step is cut into."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from longtail.deep.batches import sparse_rows as module  # noqa: E402
from longtail.deep.batches.sparse_rows import SparseRows  # noqa: E402
from longtail.deep.outputs.chunks import CHUNK, GPU_FEW, chunk_edges  # noqa: E402

CPU = torch.device("cpu")


def matrix(n: int = 37, d: int = 23) -> sp.csr_matrix:
    X = sp.random(n, d, 0.2, random_state=0, format="lil", dtype=np.float32)
    X[[0, 5, 6, n - 1]] = 0  # empty rows
    return sp.csr_matrix(X)


@pytest.mark.parametrize("look_ahead", [1, 60, 1 << 21])
@pytest.mark.parametrize("size", [1, 4, 10, 37, 50])
def test_batches_are_the_rows_in_order(monkeypatch, look_ahead, size):
    monkeypatch.setattr(module, "_LOOK_AHEAD", look_ahead)
    X = matrix()
    order = np.random.default_rng(1).permutation(37)
    dense = torch.randn(size, 3, generator=torch.Generator().manual_seed(0))
    W = torch.randn(23, 3, generator=torch.Generator().manual_seed(1))
    found = list(SparseRows(X, CPU).batches(torch.tensor(order), size))
    parts = [order[begin : begin + size] for begin in range(0, 37, size)]
    assert len(found) == len(parts)
    for batch, part in zip(found, parts, strict=True):
        rows = torch.tensor(X[part].toarray())
        assert len(batch) == len(part)
        torch.testing.assert_close(batch.times(W), rows @ W)
        out = torch.zeros(23, 3)
        out[batch.unique] = batch.transposed_times(dense[: len(part)])
        torch.testing.assert_close(out, rows.T @ dense[: len(part)])
        assert np.array_equal(batch.unique.numpy(), np.unique(X[part].indices))
        columns, of_row, values = batch.by_column
        assert torch.equal(rows[of_row, columns], values) and len(values) == X[part].nnz


def test_rows_without_entries():
    for rows in (torch.tensor([0, 5]), torch.tensor([], dtype=torch.int64)):
        batch = SparseRows(matrix(), CPU).take(rows)
        assert torch.equal(batch.times(torch.ones(23, 2)), torch.zeros(len(rows), 2))
        assert batch.transposed_times(torch.ones(len(rows), 2)).shape == (0, 2)


@pytest.mark.parametrize("outputs", [1, 7, 8, 9, 512, 513, 10_000, 205_443, 2_812_281])
@pytest.mark.parametrize("rows", [1, 128, 2000])
def test_chunks_cover_the_outputs_and_are_aligned_on_a_gpu(outputs, rows):
    assert max(np.diff(chunk_edges(rows, outputs, CPU))) == min(CHUNK, outputs)
    for device in (CPU, torch.device("cuda")):
        edges = chunk_edges(rows, outputs, device)
        assert edges[0] == 0 and edges[-1] == outputs and (np.diff(edges) > 0).all()
    if len(edges) == 2 and rows * outputs <= GPU_FEW:
        return  # one chunk: nothing is cut, and nobody waits for where
    assert all(edge % 8 == 0 for edge in edges[:-1])
    assert all(width % 8 == 0 for width in np.diff(edges)[:-1])
    assert edges[-1] - edges[-2] < 8 or outputs % 8 == 0
