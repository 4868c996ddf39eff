"""``AllTexts``: vectors of all texts of a training, by the encoder as it is at the time."""

from __future__ import annotations

from itertools import islice

import torch
from torch import nn

from longtail.deep.batches.token_rows import TokenRows
from longtail.deep.group import Group
from longtail.deep.training.plan import Plan
from longtail.text.encoding import blocks

__all__ = ["AllTexts"]

_TOGETHER = {"cpu": 1 << 12, "cuda": 1 << 18}  # padded tokens encoded at a time


class AllTexts:
    """Encodes many texts with the encoder as it is at the time."""

    def __init__(self, encoder: nn.Module, plan: Plan) -> None:
        self.encoder, self.device = encoder, torch.device(plan.device)
        self.low = plan.low and not encoder.sparse_gradients

    @torch.no_grad()
    def vectors(self, texts: TokenRows, group: Group | None = None) -> torch.Tensor:
        """Return vectors (n, e) float32; ``group``: the processes that encode some each."""
        was_training = self.encoder.training
        self.encoder.eval()
        out = torch.zeros(len(texts), self.encoder.width, device=self.device)  # type: ignore[arg-type]
        rank, size = (0, 1) if group is None else (group.rank, group.size)
        every = blocks(texts, _TOGETHER.get(self.device.type, 1 << 12))
        for numbers in islice(every, rank, None, size):
            at = torch.tensor(numbers).to(self.device)
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.low):
                out[at] = self.encoder(texts.take_known(numbers, at)).float()
        self.encoder.train(was_training)
        return out if group is None else group.sum(out)
