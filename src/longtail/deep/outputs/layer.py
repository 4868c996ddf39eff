"""``Layer``: what a trainer asks of an output layer, with answers in chunks of labels;
``AdamLayer``: what layers trained by Adam share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor
from typing import Any

import torch

from longtail.deep.adam import AdamArray
from longtail.deep.objectives.objective import Objective
from longtail.deep.outputs.chunks import Best, chunk_edges
from longtail.deep.workers import in_order

__all__ = ["AdamLayer", "Layer"]

_MERGED = 16  # chunks whose candidates are merged together


class Layer(ABC):
    """Scores of ``n_labels`` labels on a ``device``, and how they are learned.

    ``steps`` counts those taken; ``pool``: threads for the chunks, on a CPU.
    """

    steps: int = 0
    pool: Executor | None = None

    @property
    @abstractmethod
    def n_labels(self) -> int:
        """Return the number of labels."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Return where the weights are."""

    @abstractmethod
    def scores(self, h: torch.Tensor, part: slice) -> torch.Tensor:
        """Return the scores of a chunk of labels, (b, w) float32."""

    @abstractmethod
    def trained(self) -> dict[str, torch.Tensor]:
        """Return what was learned, by name: what remains of the layer after training."""

    def finite(self) -> bool:
        """Return whether everything that was learned is a finite number."""
        return all(bool(torch.isfinite(array).all()) for array in self.trained().values())

    @abstractmethod
    def arrays(self) -> dict[str, torch.Tensor]:
        """Return weights and the optimiser's state by name, for a checkpoint."""

    @abstractmethod
    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        """Take over what ``arrays`` returned after so many steps."""

    def whole(self, arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return arrays of ``trained`` or ``arrays`` with the labels of every process."""
        return arrays

    def part(self, arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return of arrays that ``whole`` returned what is this process's own."""
        return arrays

    @abstractmethod
    def step(
        self,
        h: torch.Tensor,
        targets: Any,
        objective: Objective,
        rate: float,
        *,
        want_loss: bool = False,
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        """Update the layer on one batch; return the loss, if wanted, and the gradient of ``h``."""

    @torch.no_grad()
    def top(self, h: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and scores (b, k) of the k best labels of every row, best first."""
        best = Best(min(k, self.n_labels))
        bounds = chunk_edges(len(h), self.n_labels, h.device)
        for begin in range(0, len(bounds) - 1, _MERGED):
            some = bounds[begin : begin + _MERGED + 1]
            best.add(in_order(self.pool, lambda p: best.of(self.scores(h, p), p.start), some))
        assert best.ids is not None
        return best.ids, best.scores

    @torch.no_grad()
    def squared_errors(self, h: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the sum over outputs of ``(z - t)^2`` of every row, (b,)."""
        bounds = chunk_edges(len(h), self.n_labels, h.device)
        total = torch.zeros(len(h), device=h.device)
        for part in in_order(
            self.pool, lambda p: ((self.scores(h, p) - targets[:, p]) ** 2).sum(1), bounds
        ):
            total += part
        return total


class AdamLayer(Layer):
    """``z = W h + b``: ``weights`` (L, e) and ``bias`` (L,) or None, trained by Adam."""

    def __init__(
        self,
        weights: torch.Tensor,
        bias: torch.Tensor | None,
        *,
        weight_decay: float = 0.0,
        pool: Executor | None = None,
    ) -> None:
        self.weights = AdamArray.starting(weights)
        self.bias = None if bias is None else AdamArray.starting(bias)
        self.weight_decay, self.pool = weight_decay, pool
        self.steps = 0

    @property
    def n_labels(self) -> int:
        return len(self.weights.values)

    @property
    def device(self) -> torch.device:
        return self.weights.values.device

    def scores(self, h: torch.Tensor, part: slice) -> torch.Tensor:
        z = (h @ self.weights.values[part].to(h.dtype).T).float()
        return z if self.bias is None else z + self.bias.values[part]

    def _parts(self) -> dict[str, AdamArray]:
        return {"weights": self.weights} | ({} if self.bias is None else {"bias": self.bias})

    def trained(self) -> dict[str, torch.Tensor]:
        return {name: part.values for name, part in self._parts().items()}

    def arrays(self) -> dict[str, torch.Tensor]:
        return {
            f"{name}_{key}": array
            for name, part in self._parts().items()
            for key, array in part.arrays().items()
        }

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        for name, part in self._parts().items():
            own = {k: a for k, a in arrays.items() if k.startswith(f"{name}_")}
            part.load({key.removeprefix(f"{name}_"): array for key, array in own.items()})
        self.steps = steps
