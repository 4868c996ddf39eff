"""``Convolution``: convolutions over word embeddings, for short texts.

The encoder of InceptionXML (Kharbanda et al. 2021): the embeddings of a text, (t, d), pass a layer
of self-attention; then filters of three widths slide along the *embedding* dimension, each one
spanning all t words; what they find goes through one hidden layer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import pad

from longtail.deep.batches.token_rows import TokenBatch
from longtail.exceptions import ModelFormatError

__all__ = ["Convolution"]


class Convolution(nn.Module):
    """``size`` embeddings of ``embedding`` numbers, texts of ``length`` words; filters of
    ``windows`` (4, 8, 16) with ``channels`` each and a stride of 4; vectors of ``width`` numbers.
    """

    kind = "convolution"
    sparse_gradients = True

    def __init__(
        self,
        size: int,
        *,
        width: int = 480,
        length: int = 32,
        embedding: int = 300,
        windows: tuple[int, ...] = (4, 8, 16),
        channels: int = 32,
        dropout: float = 0.25,
    ) -> None:
        super().__init__()
        self.size, self.width, self.length, self.embedding = size, width, length, embedding
        self.windows, self.channels, self.dropout = tuple(windows), channels, dropout
        self.embeddings = nn.Embedding(size, embedding, sparse=True)
        nn.init.normal_(self.embeddings.weight, std=0.1)
        self.drop = nn.Dropout(dropout)
        self.query, self.key = nn.Linear(embedding, embedding), nn.Linear(embedding, embedding)
        self.norm = nn.LayerNorm(embedding)
        self.filters = nn.ModuleList(
            nn.Conv1d(length, channels, window, stride=4) for window in self.windows
        )
        places = sum((embedding - window) // 4 + 1 for window in self.windows)
        self.hidden = nn.Linear(places * channels, width)

    @classmethod
    def from_config(cls, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> Convolution:
        wanted = {"width", "length", "embedding", "windows", "channels", "dropout"}
        if set(config) != wanted:
            raise ModelFormatError("the encoder's configuration is not usable")
        size = len(weights["embeddings.weight"])
        with torch.device("meta"):
            outline = cls(size, **{**config, "windows": tuple(config["windows"])})
        shapes = {name: t.shape for name, t in outline.state_dict().items()}
        if shapes != {name: t.shape for name, t in weights.items()}:
            raise ModelFormatError("the encoder's weights do not fit its configuration")
        out = cls(size, **{**config, "windows": tuple(config["windows"])})
        out.load_state_dict(weights)
        return out

    def config(self) -> dict[str, Any]:
        """Return what ``from_config`` needs besides the weights: JSON values."""
        return {
            "width": self.width,
            "length": self.length,
            "embedding": self.embedding,
            "windows": list(self.windows),
            "channels": self.channels,
            "dropout": self.dropout,
        }

    def forward(self, batch: TokenBatch) -> torch.Tensor:
        """Return vectors (b, e)."""
        return self.pooled(batch.ids, batch.mask, None)

    def pooled(
        self, ids: torch.Tensor, present: torch.Tensor, attended: torch.Tensor | None
    ) -> torch.Tensor:
        """Return vectors of token ids (b, t); what is beyond ``length`` is cut off."""
        ids, present = ids[:, : self.length], present[:, : self.length]
        short = self.length - ids.shape[1]
        ids, present = pad(ids, (0, short)), pad(present, (0, short))
        words = self.drop(self.embeddings(ids)) * present[:, :, None]
        scores = self.query(words) @ self.key(words).transpose(1, 2) / self.embedding**0.5
        scores = scores.masked_fill(~present[:, None], -1e4)
        words = self.norm(words + torch.softmax(scores, dim=2) @ words) * present[:, :, None]
        found = [torch.relu(one(words)).flatten(1) for one in self.filters]
        return torch.relu(self.hidden(self.drop(torch.cat(found, dim=1))))
