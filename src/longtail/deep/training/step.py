"""One step: vectors, the output layer's own step, and the gradient back through the encoder.

Where a batch does not fit into memory it passes through the encoder in pieces, twice: once for the
vectors, without a graph, and, once the output layer has returned their gradient, again piece by
piece with one. The objective sees the whole batch at once, so the result is that of one large step;
random numbers of an encoder (its dropout) are the same both times.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from longtail.deep.group import Group
from longtail.deep.objectives.objective import Objective
from longtail.deep.optimisers import clip_gradients
from longtail.deep.outputs.layer import Layer
from longtail.deep.training.plan import Plan

__all__ = ["Step"]

log = logging.getLogger(__name__)


class Step:
    """Forward and backward of one batch; ``begin`` starts an epoch."""

    def __init__(
        self,
        encoder: nn.Module,
        output: Layer,
        objective: Objective,
        plan: Plan,
        group: Group | None = None,
    ) -> None:
        self.encoder, self.output, self.objective, self.plan = encoder, output, objective, plan
        self.group = group
        self.device = torch.device(plan.device)
        self.low = plan.low
        self.pieces = 1
        self.draws = torch.Generator(self.device)

    def begin(self, epoch: int) -> None:
        """Seed what is dropped between encoder and output layer."""
        seed = np.random.SeedSequence([self.plan.seed, 2, epoch]).generate_state(1)[0]
        self.draws.manual_seed(int(seed))

    @torch.no_grad()
    def encode(self, inputs: Any) -> torch.Tensor:
        """Return the vectors of a batch, (b, e) float32, without a graph."""
        with self._precision():
            return self.encoder(inputs).float()  # type: ignore[no-any-return]

    def __call__(
        self, inputs: Any, targets: Any, rate: float, number: int, *, want_loss: bool = False
    ) -> torch.Tensor | None:
        """Update the output layer and leave the gradient of the encoder with its parameters."""
        places: list[np.ndarray] = []  # of the rows of every process
        if self.group is not None:
            inputs, places = inputs.shared(self.group)
        if self.plan.micro_batch is not None:
            self.pieces = max(self.pieces, -(-len(inputs) // self.plan.micro_batch))
        if len(inputs):
            vectors, h = self.forward(inputs, number)
        else:  # a batch of fewer rows than processes
            vectors, h = None, torch.zeros((0, self.encoder.width), device=self.device)  # type: ignore[call-overload]
        if self.group is not None:
            order = np.argsort(np.concatenate(places), kind="stable")
            h = self.group.gather(h, [len(place) for place in places])[self._at(order)]
            self._seed(number, 0)  # what an output layer drops is the same everywhere
        dropped = self._dropped(h)
        loss, gradient = self.output.step(
            h if dropped is None else h * dropped,
            targets,
            self.objective,
            rate,
            want_loss=want_loss,
        )
        if dropped is not None:
            gradient *= dropped
        if self.group is not None:
            gradient = gradient[self._at(places[self.group.rank])]
        self.backward(inputs, vectors, gradient, number)
        if self.group is not None:
            self.group.sum_gradients(self.encoder)
        if self.plan.clip is not None:
            clip_gradients(self.encoder, self.plan.clip)
        return loss

    def forward(self, inputs: Any, number: int) -> tuple[torch.Tensor | None, torch.Tensor]:
        """Return the vectors with their graph, if the batch is one piece, and without."""
        while True:
            try:
                if self.pieces == 1:
                    vectors = self._vectors(inputs, number, 0)
                    return vectors, vectors.detach()
                with torch.no_grad():
                    parts = inputs.pieces(self.pieces)
                    return None, torch.cat(
                        [self._vectors(part, number, i) for i, part in enumerate(parts)]
                    )
            except torch.cuda.OutOfMemoryError:
                self._smaller(inputs)

    def backward(
        self, inputs: Any, vectors: torch.Tensor | None, gradient: torch.Tensor, number: int
    ) -> None:
        """Leave the gradient of the encoder with its parameters."""
        try:
            if vectors is not None:
                if vectors.requires_grad:
                    vectors.backward(gradient)
                return
        except torch.cuda.OutOfMemoryError:
            vectors = None
            self._smaller(inputs)
        while True:
            try:
                self.encoder.zero_grad(set_to_none=True)
                begin = 0
                for i, part in enumerate(inputs.pieces(self.pieces)):
                    end = begin + len(part)
                    piece = self._vectors(part, number, i)
                    if piece.requires_grad:
                        piece.backward(gradient[begin:end])
                    begin = end
                return
            except torch.cuda.OutOfMemoryError:
                self._smaller(inputs)

    def _vectors(self, inputs: Any, number: int, piece: int) -> torch.Tensor:
        if self.encoder.training:
            if self.group is not None:  # as the pieces of one process, in the order of rows
                piece += self.group.rank * self.pieces
            self._seed(number, piece)
        with self._precision():
            return self.encoder(inputs).float()  # type: ignore[no-any-return]

    def _seed(self, number: int, piece: int) -> None:
        state = np.random.SeedSequence([self.plan.seed, 6, number, piece]).generate_state(1)
        torch.manual_seed(int(state[0]))

    def _at(self, places: np.ndarray) -> torch.Tensor:
        return torch.tensor(places).to(self.device)

    def _smaller(self, inputs: Any) -> None:
        """Cut batches into twice as many pieces, or give up."""
        torch.cuda.empty_cache()
        if not hasattr(inputs, "pieces") or self.pieces >= len(inputs):
            raise MemoryError(
                "the GPU's memory does not hold one row of a batch: lower max_length or batch_size"
            )
        self.pieces *= 2
        log.warning("the GPU's memory is full: batches now pass in %d pieces", self.pieces)

    def _dropped(self, h: torch.Tensor) -> torch.Tensor | None:
        """Return a mask of what is kept of the vectors, scaled so that their mean stays."""
        chance = self.plan.dropout
        if not chance:
            return None
        mask = torch.rand(h.shape, generator=self.draws, device=self.device) >= chance
        return mask / (1 - chance)

    def _precision(self) -> Any:
        if not self.low or getattr(self.encoder, "sparse_gradients", False):
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)
