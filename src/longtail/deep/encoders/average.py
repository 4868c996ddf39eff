"""``Average``: weighted means of word embeddings and a residual block, for short texts.

The encoder of Astec (Dahiya et al. 2021, "DeepXML"): ``z = relu(sum_t w_t e_t)`` over the tokens of
a text, with tf-idf weights of unit length, then ``z + relu(R z + r)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from longtail.data.tokens import Tokens
from longtail.deep.batches.token_rows import TokenBatch
from longtail.exceptions import ModelFormatError

__all__ = ["Average", "inverse_document_frequency"]


def inverse_document_frequency(tokens: Tokens, size: int) -> np.ndarray:
    """Return ``log((1 + n) / (1 + n_t)) + 1`` of every token id, (size,) float32."""
    rows = np.repeat(np.arange(len(tokens), dtype=np.int64), tokens.lengths)
    pairs = np.unique(rows * size + tokens.ids)
    counts = np.bincount(pairs % size, minlength=size)
    return (np.log((1 + len(tokens)) / (1 + counts)) + 1).astype(np.float32)


class Average(nn.Module):
    """``size`` embeddings of ``width`` numbers; ``dropout`` before the residual block."""

    kind = "average"
    sparse_gradients = True

    def __init__(self, size: int, width: int = 384, dropout: float = 0.5) -> None:
        super().__init__()
        self.size, self.width, self.dropout = size, width, dropout
        self.embeddings = nn.Embedding(size, width, sparse=True)
        nn.init.normal_(self.embeddings.weight, std=0.1)
        self.drop = nn.Dropout(dropout)
        self.residual = nn.Linear(width, width)
        self.register_buffer("importance", torch.ones(size))

    def prepare(self, tokens: Tokens) -> None:
        """Learn the importance of every token from the training texts."""
        self.importance.copy_(torch.tensor(inverse_document_frequency(tokens, self.size)))

    @classmethod
    def from_config(cls, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> Average:
        size, width = weights["embeddings.weight"].shape
        if config != {"dropout": config.get("dropout")}:
            raise ModelFormatError("the encoder's configuration is not usable")
        out = cls(size, width, float(config["dropout"]))
        out.load_state_dict(weights)
        return out

    def config(self) -> dict[str, Any]:
        """Return what ``from_config`` needs besides the weights: JSON values."""
        return {"dropout": self.dropout}

    def forward(self, batch: TokenBatch) -> torch.Tensor:
        """Return vectors (b, e)."""
        return self.pooled(batch.ids, batch.mask, None)

    def pooled(
        self, ids: torch.Tensor, present: torch.Tensor, attended: torch.Tensor | None
    ) -> torch.Tensor:
        """Return vectors of token ids (b, t)."""
        weight = self.importance[ids] * present
        weight = weight / weight.norm(dim=1, keepdim=True).clamp(min=1e-12)
        z = torch.relu((self.embeddings(ids) * weight[:, :, None]).sum(1))
        z = self.drop(z)
        return z + torch.relu(self.residual(z))  # type: ignore[no-any-return]
