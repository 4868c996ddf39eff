"""Labels in chunks: how wide, their scores, and the best of them.

On a GPU chunks are wide, since every kernel launch costs as much as a small product, and but for a
narrow last one they are multiples of ``ALIGNED``: rows that do not begin at multiples of 16 bytes
are multiplied by other kernels, several times as slow. Few scores stay in one chunk all the same:
where there are two, the processor waits for the GPU to learn which labels lie in which.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from longtail.deep.workers import edges

__all__ = ["Best", "chunk_edges"]

CHUNK = 256  # on a CPU, where a chunk is the work of one thread
ALIGNED = 8
GPU_CHUNK = 16_384
GPU_LOGITS = 1 << 25  # of a chunk, where the batch is small
GPU_FEW = 1 << 23  # scores that stay in one chunk, however wide


def chunk_edges(rows: int, outputs: int, device: torch.device) -> list[int]:
    """Return where the chunks of outputs begin and end, for a batch of so many rows."""
    if device.type == "cpu":
        return edges(outputs, CHUNK)
    if rows * outputs <= GPU_FEW:
        return [0, outputs]
    width = max(GPU_CHUNK, GPU_LOGITS // max(1, rows)) // ALIGNED * ALIGNED
    out = edges(outputs, width)
    last = outputs // ALIGNED * ALIGNED
    if out[-2] < last < outputs:
        out.insert(-1, last)
    return out


class Best:
    """The k best labels of every row, gathered chunk by chunk; equal scores go to the smaller id.

    Exact but for more than ``_SPARE`` equal scores at the k-th place within one chunk.
    """

    _SPARE = 8

    def __init__(self, k: int) -> None:
        self.k = k
        self.ids: torch.Tensor | None = None
        self.scores: torch.Tensor

    def of(self, z: torch.Tensor, start: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return candidates of a chunk of scores (b, w) whose first label is ``start``."""
        count = min(z.shape[1], self.k + self._SPARE)
        scores, columns = torch.topk(z, count, dim=1)
        columns, order = columns.sort(dim=1)
        return columns + start, scores.gather(1, order)

    def add(self, candidates: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Take over candidates, in ascending order of labels."""
        found = list(candidates)
        if self.ids is not None:
            found.insert(0, (self.ids, self.scores))
        if not found:
            return
        ids = torch.cat([each for each, _ in found], dim=1)
        scores = torch.cat([each for _, each in found], dim=1)
        order = scores.sort(dim=1, descending=True, stable=True).indices[:, : self.k]
        self.ids, self.scores = ids.gather(1, order), scores.gather(1, order)
