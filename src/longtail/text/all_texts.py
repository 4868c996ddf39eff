"""``AllTexts``: vectors of all texts of a training, by the encoder as it is at the time."""

from __future__ import annotations

import torch
from torch import nn

from longtail.deep.batches.token_rows import TokenRows
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
    def vectors(self, texts: TokenRows) -> torch.Tensor:
        """Return vectors (n, e) float32."""
        was_training = self.encoder.training
        self.encoder.eval()
        out = torch.empty(len(texts), self.encoder.width, device=self.device)  # type: ignore[arg-type]
        for numbers in blocks(texts, _TOGETHER.get(self.device.type, 1 << 12)):
            at = torch.tensor(numbers).to(self.device)
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.low):
                out[at] = self.encoder(texts.take_known(numbers, at)).float()
        self.encoder.train(was_training)
        return out
