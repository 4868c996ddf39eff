"""``Siamese``: one encoder for rows and for labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from longtail.deep.batches.pairs import PairBatch

__all__ = ["Siamese"]


class Siamese(nn.Module):
    """Reads the batches that its encoder reads, and pairs of them: vectors of rows, then labels."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.width, self.sparse_gradients = inner.width, inner.sparse_gradients

    def forward(self, batch: Any) -> torch.Tensor:
        """Return vectors (b, e)."""
        if isinstance(batch, PairBatch):
            return torch.cat([self.inner(part).float() for part in batch.parts])
        return self.inner(batch)  # type: ignore[no-any-return]
