"""``Convolution``: convolutions over word embeddings, for short texts.

The encoder of InceptionXML (Kharbanda et al. 2021). Filters slide along the *embedding* dimension,
and each one spans all words of the text:

    words     (b, t, d)   embeddings; zeros after the last word
    attended  (b, t, d)   x + g (x xT)(V x), over words, then over the numbers of an embedding
    mixed     (b, c, d)   c weighted sums of words
    found     (b, 3c, p)  filters of three widths, in a circle, one place in four
    joined    (b, c, q)   one filter of 16 places over these, one place in four
    vector    (b, cq)     flattened, and a hidden layer beside it

The scales g start at zero and V has a norm of one. After every layer: GELU and a norm over the
batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import batch_norm, gelu, normalize, pad

from longtail.deep.batches.token_rows import TokenBatch
from longtail.exceptions import ModelFormatError

__all__ = ["Convolution"]

STRIDE, JOINED = 4, 16


class Convolution(nn.Module):
    """``size`` embeddings of ``embedding`` numbers, texts of ``length`` words; filters of
    ``windows`` with ``channels`` each; vectors of ``width`` numbers, 480 of 300.
    """

    kind = "convolution"
    sparse_gradients = True

    def __init__(
        self,
        size: int,
        *,
        length: int = 32,
        embedding: int = 300,
        windows: tuple[int, ...] = (4, 8, 16),
        channels: int = 32,
        dropout: float = 0.25,
    ) -> None:
        super().__init__()
        self.size, self.length, self.embedding = size, length, embedding
        self.windows, self.channels, self.dropout = tuple(windows), channels, dropout
        places = (embedding - STRIDE) // STRIDE + 1
        self.width = ((places - JOINED) // STRIDE + 1) * channels
        self.embeddings = nn.Embedding(size, embedding, sparse=True)
        nn.init.normal_(self.embeddings.weight, std=0.1)
        self.drop = nn.Dropout(dropout)
        self.over_words, self.over_numbers = _Attention(length), _Attention(embedding)
        self.mix = nn.Conv1d(length, channels, 1)
        self.filters = nn.ModuleList(
            nn.Conv1d(channels, channels, window, stride=STRIDE) for window in self.windows
        )
        self.join = nn.Conv1d(len(self.windows) * channels, channels, JOINED, stride=STRIDE)
        self.hidden = nn.Linear(self.width, self.width)
        for layer in (self.mix, *self.filters, self.join, self.hidden):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.norms = nn.ModuleList(
            _Norm(n) for n in (channels, len(self.windows) * channels, channels, self.width)
        )

    @classmethod
    def from_config(cls, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> Convolution:
        wanted = {"length", "embedding", "windows", "channels", "dropout"}
        if set(config) != wanted or not all(
            STRIDE <= window <= config["embedding"] for window in config["windows"]
        ):
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
        words = self.drop(self.embeddings(ids) * present[:, :, None])
        by_words = self.over_words(words, words).transpose(1, 2)
        both = self.over_numbers(by_words, words.transpose(1, 2)).transpose(1, 2)
        mixed = self.drop(self.norms[0](gelu(self.mix(both))))
        found = torch.cat([one(_circled(mixed, one)) for one in self.filters], dim=1)
        found = self.drop(self.norms[1](gelu(found)))
        joined = self.norms[2](gelu(self.join(found))).flatten(1)
        return joined + self.norms[3](gelu(self.hidden(self.drop(joined))))  # type: ignore[no-any-return]


def _circled(x: torch.Tensor, one: nn.Conv1d) -> torch.Tensor:
    """Continue x at both ends by the other, so that every width finds as many places."""
    more = one.kernel_size[0] - STRIDE
    left = more // 2
    return pad(x, (left, more - left), mode="circular") if more else x


class _Attention(nn.Module):
    """``x + g (x yT)(V x)`` for x and y (b, n, m); V is divided by its largest singular value."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n, n))
        nn.init.xavier_normal_(self.weight)
        self.scale = nn.Parameter(torch.zeros(()))
        self.register_buffer("direction", normalize(torch.ones(n), dim=0))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return values (b, n, m)."""
        weight = self.weight
        with torch.no_grad():  # a step of the power method; products in full precision
            right = normalize((weight * self.direction[:, None]).sum(0), dim=0)
            left = normalize((weight * right).sum(1), dim=0)
            if self.training:
                self.direction.copy_(left)
        size = (left * (weight * right).sum(1)).sum()
        return x + self.scale * ((x @ y.transpose(1, 2)) @ ((weight / size) @ x))


class _Norm(nn.BatchNorm1d):
    """A norm over the batch that takes what it has learned where there is one row alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        learn = self.training and len(x) > 1
        return batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, learn, 0.1, self.eps
        )
