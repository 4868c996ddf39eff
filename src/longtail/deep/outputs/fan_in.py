"""``FanIn``: a fixed number of weights per label, and which inputs they read.

::

    values (f, L) float32     z_bj = bias_j + sum_s values[s, j] a[b, index[s, j]]
    index  (f, L) uint16      a = h, or relu(V h + v) with a wide layer of its own
                              (int32 where there are more than 65,536 inputs)

Memory is ``f L (4 + 2)`` bytes, and 8 more per weight for Adam's moments in training: L labels of a
width of 768 in full take ``768 L (4 + 8)``. All labels are scored in every step, in chunks; labels
whose gradients are zero (most of them, under a squared hinge) cost nothing going back.

Every so many steps the smallest weights are given up and their slots read another input of the same
label, drawn uniformly (``Rewiring``; Mocanu et al. 2018). An input may be drawn that the label has:
both then add up, and the label reads one input fewer.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from longtail._native import core
from longtail.deep.adam import Adam, AdamArray
from longtail.deep.objectives.objective import Objective
from longtail.deep.outputs.fan_in_gpu import fan_in_kernels
from longtail.deep.outputs.layer import Layer
from longtail.deep.workers import edges

__all__ = ["FanIn", "Rewiring", "drawn_index", "memory_of"]

_CHUNK = 4096
_GPU_SCORES = 1 << 25  # of a chunk, in float32
_DISTINCT = 4096  # inputs up to which those of a label are drawn without repetition
_SIXTEEN = 1 << 16


@dataclass(frozen=True)
class Rewiring:
    """When and which weights read another input.

    ``every`` so many steps, up to step ``until``. ``share``: that of the weights of the whole layer
    which are smallest; or ``threshold``: those below it in magnitude, and it falls along half a
    cosine to ``least`` at ``until``. New weights begin at ``zero`` or keep the value they had;
    ``reset``: the moments of their optimiser begin anew.
    """

    every: int = 1000
    until: int = 1 << 62
    share: float | None = 0.1
    threshold: float = 0.01
    least: float = 1e-4
    zero: bool = True
    reset: bool = True
    seed: int = 0

    def now(self, step: int) -> bool:
        """Return whether weights are rewired after ``step``, counted from 1."""
        return step % self.every == 0 and step <= self.until

    def bound(self, step: int) -> float:
        """Return the magnitude below which weights are rewired after ``step``."""
        done = min(1.0, step / self.until)
        return self.least + (self.threshold - self.least) * 0.5 * (1 + math.cos(math.pi * done))


def memory_of(labels: int, f: int, inputs: int, *, training: bool = True) -> int:
    """Return the bytes of a layer: ``f L (value + index)``, and two moments of every value."""
    return labels * f * (4 + (2 if inputs <= _SIXTEEN else 4) + (8 if training else 0))


def drawn_index(rng: np.random.Generator, f: int, labels: int, inputs: int) -> np.ndarray:
    """Return the inputs (f, L) that labels read at first."""
    if f > inputs:
        raise ValueError(f"fan_in is {f}, but there are {inputs} inputs")
    out = np.empty((f, labels), np.uint16 if inputs <= _SIXTEEN else np.int32)
    if f == inputs:
        out[:] = np.arange(inputs)[:, None]
    elif inputs > _DISTINCT:
        out[:] = rng.integers(0, inputs, out.shape)
    else:
        for begin in range(0, labels, _CHUNK):
            width = min(_CHUNK, labels - begin)
            keys = rng.random((width, inputs), np.float32)
            out[:, begin : begin + width] = np.argpartition(keys, f - 1, axis=1)[:, :f].T
    return out


class FanIn(Layer):
    """``values`` (f, L) float32, ``index`` (f, L), ``bias`` (L,), ``width`` of the vectors h.

    ``wide``: weights (h, e) and bias (h,) of a hidden layer in front, or None.
    """

    def __init__(
        self,
        values: torch.Tensor,
        index: torch.Tensor,
        bias: torch.Tensor,
        width: int,
        *,
        wide: tuple[torch.Tensor, torch.Tensor] | None = None,
        rewiring: Rewiring | None = None,
        weight_decay: float = 0.0,
        threads: int = 1,
        pool: Executor | None = None,
    ) -> None:
        self.values, self.bias = AdamArray.starting(values), AdamArray.starting(bias)
        self.index, self.width = index, width
        self.wide = None if wide is None else tuple(AdamArray.starting(part) for part in wide)
        self.inputs = width if wide is None else len(wide[1])
        self.rewiring, self.weight_decay = rewiring, weight_decay
        self.threads, self.pool = threads, pool
        self._core: Any = None

    @property
    def n_labels(self) -> int:
        return int(self.values.values.shape[1])

    @property
    def device(self) -> torch.device:
        return self.values.values.device

    def _edges(self, rows: int) -> list[int]:
        on_gpu = self.device.type != "cpu"
        return edges(self.n_labels, max(_CHUNK, _GPU_SCORES // max(1, rows)) if on_gpu else _CHUNK)

    def _active(self, h: torch.Tensor) -> torch.Tensor:
        if self.wide is None:
            return h.float()
        weights, bias = self.wide
        return torch.relu_(torch.addmm(bias.values, h.float(), weights.values.T))

    def scores(self, h: torch.Tensor, part: slice) -> torch.Tensor:
        return self._products(self._active(h), part) + self.bias.values[part]

    def _native(self) -> Any:
        """Return the kernels of a CPU, on the arrays of this layer as they are."""
        if self._core is None:
            self._core = core.FanInLayer(
                self.values.values.numpy(), self.index.numpy(), self.inputs
            )
        return self._core

    def _products(self, a: torch.Tensor, part: slice) -> torch.Tensor:
        values, index = self.values.values, self.index
        if not a.is_cuda:
            rows = a.contiguous().numpy()
            return torch.from_numpy(
                self._native().scores(None, rows, part.start, part.stop, self.threads)
            )
        kernels = fan_in_kernels()
        if kernels is not None:
            return kernels.scores(a, values, index, part)  # type: ignore[no-any-return]
        at = index[:, part].long()
        turned, total = a.T.contiguous(), a.new_zeros(at.shape[1], len(a))
        for s in range(len(at)):
            total += values[s, part, None] * turned[at[s]]
        return total.T

    def _back(
        self, a: torch.Tensor, g: torch.Tensor, part: slice, through: torch.Tensor
    ) -> torch.Tensor:
        """Add the gradient of the inputs to ``through``; return that of the values, (f, w)."""
        values, index = self.values.values, self.index
        if not a.is_cuda:
            made = self._native().gradients(
                a.contiguous().numpy(),
                g.contiguous().numpy(),
                part.start,
                part.stop,
                through.numpy(),
                self.threads,
            )
            return torch.from_numpy(made)
        kernels = fan_in_kernels()
        if kernels is not None:
            return kernels.gradients(a, g, values, index, part, through)  # type: ignore[no-any-return]
        at = index[:, part].long()
        turned, slopes = a.T.contiguous(), g.T.contiguous()
        out, back = torch.empty_like(values[:, part]), torch.zeros_like(turned)
        for s in range(len(at)):
            out[s] = (slopes * turned[at[s]]).sum(1)
            back.index_add_(0, at[s], values[s, part, None] * slopes)
        through += back.T
        return out

    @torch.no_grad()
    def step(
        self,
        h: torch.Tensor,
        targets: Any,
        objective: Objective,
        rate: float,
        *,
        want_loss: bool = False,
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        self.steps += 1
        adam, bounds = Adam(rate, self.weight_decay), self._edges(len(h))
        a = self._active(h)
        goal = objective.bind(targets, bounds)
        parts = [slice(*edge) for edge in pairwise(bounds)]
        if goal.looks:
            goal.settle(
                goal.look(self._products(a, part) + self.bias.values[part], part) for part in parts
            )
        loss = torch.zeros((), device=h.device) if want_loss else None
        through = torch.zeros_like(a)
        for part in parts:
            products, bias = self._products(a, part), self.bias.values[part]
            if loss is not None:
                loss += goal.value(products + bias, part)
            g = goal.gradient(products, bias, part).float()
            gradient = self._back(a, g, part, through)
            some = AdamArray(
                self.values.values[:, part], self.values.first[:, part], self.values.second[:, part]
            )
            some.update(gradient, adam, self.steps)
            self.bias.part(part).update(g.sum(0), adam, self.steps)
        gradient_h = self._back_wide(h, a, through, adam)
        if self.rewiring is not None and self.rewiring.now(self.steps):
            self._rewire(self.rewiring)
        return loss, gradient_h

    def _back_wide(
        self, h: torch.Tensor, a: torch.Tensor, through: torch.Tensor, adam: Adam
    ) -> torch.Tensor:
        if self.wide is None:
            return through
        weights, bias = self.wide
        through *= a > 0
        gradient = through @ weights.values
        weights.update(through.T @ h.float(), adam, self.steps)
        bias.update(through.sum(0), adam, self.steps)
        return gradient

    def _rewire(self, rewiring: Rewiring) -> None:
        """Let the smallest weights read other inputs."""
        values = self.values.values.view(-1)
        size = values.abs()
        if rewiring.share is None:
            chosen = torch.nonzero(size < rewiring.bound(self.steps))[:, 0]
        else:
            chosen = torch.topk(size, int(rewiring.share * len(size)), largest=False).indices
        state = np.random.SeedSequence([rewiring.seed, 8, self.steps]).generate_state(1)
        draws = torch.Generator(self.device).manual_seed(int(state[0]))
        new = torch.randint(0, self.inputs, (len(chosen),), generator=draws, device=self.device)
        raw = self.index.view(-1)
        if raw.dtype == torch.uint16:
            raw.view(torch.int16)[chosen] = new.to(torch.int16)
        else:
            raw[chosen] = new.to(raw.dtype)
        if rewiring.zero:
            values[chosen] = 0
        if rewiring.reset:
            self.values.first.view(-1)[chosen] = 0
            self.values.second.view(-1)[chosen] = 0

    def _parts(self) -> dict[str, AdamArray]:
        parts = {"values": self.values, "bias": self.bias}
        if self.wide is not None:
            parts |= {"wide_weights": self.wide[0], "wide_bias": self.wide[1]}
        return parts

    def trained(self) -> dict[str, torch.Tensor]:
        return {"index": self.index, **{name: part.values for name, part in self._parts().items()}}

    def finite(self) -> bool:
        return all(bool(torch.isfinite(part.values).all()) for part in self._parts().values())

    def arrays(self) -> dict[str, torch.Tensor]:
        out = {
            f"{name}.{key}": array
            for name, part in self._parts().items()
            for key, array in part.arrays().items()
        }
        return {"index": self.index, **out}

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        self.index.copy_(arrays["index"])
        for name, part in self._parts().items():
            own = {k: a for k, a in arrays.items() if k.startswith(f"{name}.")}
            part.load({key.removeprefix(f"{name}."): array for key, array in own.items()})
        self.steps = steps
