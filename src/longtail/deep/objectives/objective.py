"""``Objective`` and ``Bound``: what an output layer asks of a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch

from longtail.deep.batches.targets import DenseRows, LabelBatch, LabelRows

__all__ = ["REDUCTIONS", "Bound", "Entries", "Objective", "Pointwise"]

REDUCTIONS = ("rows", "sum", "mean")


@dataclass(frozen=True)
class Objective(ABC):
    """A loss with the weights of its entries, times ``scale``. ``link`` tells what a score means:
    "sigmoid" and "softmax" make it a probability, "hinge" and "identity" do not.
    """

    reduction: str = "rows"
    scale: float = 1.0
    link: ClassVar[str]

    def __post_init__(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise ValueError(
                f"reduction must be one of {', '.join(REDUCTIONS)}, got {self.reduction!r}"
            )

    @abstractmethod
    def start_bias(self, targets: Any) -> np.ndarray:
        """Return the bias (L,) float32 that is best if scores depend on nothing else, so that the
        first epochs need not learn which labels are rare. ``targets``: those of the training rows.
        """

    @abstractmethod
    def rows(self, targets: Any, device: torch.device, epoch: int) -> LabelRows | DenseRows:
        """Return the targets on a device with their weights, for one epoch."""

    @property
    def changes(self) -> bool:
        """Whether ``rows`` is another in every epoch."""
        return False

    @abstractmethod
    def bind(self, targets: Any, bounds: list[int]) -> Bound:
        """Return the loss of one batch over labels in the chunks between ``bounds``."""

    def on_pool(
        self,
        z: torch.Tensor,
        targets: torch.Tensor,
        weights: torch.Tensor | None,
        present: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss over the scores ``z`` (b, s) of some labels, and its gradient.

        ``targets`` (b, s) in [0, 1]; ``weights`` (b, s): what an entry costs, None for 1;
        ``present`` (b, s): false where a row has no label there. "mean" divides by b s.
        """
        raise TypeError(f"{type(self).__name__} cannot learn from a pool of labels")

    def divisor(self, rows: int, labels: int) -> float:
        """Return what the sum over rows and labels is divided by."""
        return {"rows": rows, "sum": 1, "mean": rows * labels}[self.reduction] / self.scale


@dataclass(frozen=True)
class Pointwise:
    """A gradient by scores that is one formula, but for the observed labels: what a kernel needs.

    ``kind``: a binary loss, whose slope for an absent label it is, or "softmax", ``e^(z - n)``;
    times ``scale``. ``per_row`` (b,): the weight of absent labels, or n of a softmax; None for 1.
    ``rows`` and ``columns`` (m,): the observed labels; ``at(z)``: their gradient, (m,), by scores.
    """

    kind: str
    scale: float
    per_row: torch.Tensor | None
    rows: torch.Tensor
    columns: torch.Tensor
    at: Callable[[torch.Tensor], torch.Tensor]


class Bound(ABC):
    """The loss of one batch. ``gradient`` and ``value`` are asked chunk by chunk, in any order;
    where ``looks`` is true, ``look`` has seen every chunk first and ``settle`` what it returned.
    """

    looks = False

    def look(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        """Return what a chunk of scores contributes to a number of every row, (b,)."""
        raise RuntimeError(f"{type(self).__name__} needs no first look")

    def settle(self, parts: Iterable[torch.Tensor]) -> None:
        """Put together what ``look`` returned, in the order of chunks."""
        raise RuntimeError(f"{type(self).__name__} needs no first look")

    @abstractmethod
    def gradient(self, products: torch.Tensor, bias: torch.Tensor, part: slice) -> torch.Tensor:
        """Return the gradient by the scores ``products + bias`` of a chunk, (b, w)."""

    def pointwise(self) -> Pointwise | None:
        """Return the gradient as a formula, or None where it is not one."""
        return None

    @abstractmethod
    def value(self, z: torch.Tensor, part: slice) -> torch.Tensor:
        """Return what a chunk of scores (b, w) adds to the loss, a scalar."""


class Entries:
    """The observed labels of a batch, by chunk: for the chunk that begins at label ``part.start``,
    ``of(part)`` gives rows, columns within the chunk, and the weights as positive and negative.
    """

    def __init__(self, labels: LabelBatch, bounds: list[int]) -> None:
        self.columns, self.rows, self.positive = labels.entries.by_column
        self.negative = labels.entries.extra
        cuts = [0, len(self.columns)]  # one chunk: no need to wait for what a GPU finds
        if len(bounds) > 2:
            edges = torch.tensor(bounds, device=self.columns.device)
            cuts = torch.searchsorted(self.columns, edges).tolist()
        ranges = (slice(*cut) for cut in pairwise(cuts))
        self.ranges = dict(zip(bounds, ranges, strict=False))

    def of(
        self, part: slice
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        some = self.ranges[part.start]
        negative = None if self.negative is None else self.negative[some]
        return self.rows[some], self.columns[some] - part.start, self.positive[some], negative
