"""Optimisers of encoders: Adam for dense gradients, or for some rows at a time."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn

from longtail.deep.adam import Adam, AdamArray

__all__ = [
    "CompensatedAdamW",
    "EncoderOptimiser",
    "LazyAdam",
    "TorchAdamW",
    "clip_gradients",
    "optimiser_of",
]


class EncoderOptimiser(Protocol):
    """What a trainer asks of the optimiser of an encoder."""

    def step(self, rate: float) -> None:
        """Change the weights by their gradients, and forget these."""

    def arrays(self) -> dict[str, torch.Tensor]:
        """Return the state by name, for a checkpoint."""

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        """Take over what ``arrays`` returned after so many steps."""


def optimiser_of(
    encoder: nn.Module, weight_decay: float, *, compensated: bool = False
) -> EncoderOptimiser:
    """Return the optimiser that fits the gradients of an encoder; ``compensated``: its weights are
    kept in bfloat16.
    """
    if getattr(encoder, "sparse_gradients", False):
        return LazyAdam(encoder, weight_decay)
    if compensated:
        return CompensatedAdamW(encoder, weight_decay)
    return TorchAdamW(encoder, weight_decay)


@torch.no_grad()
def clip_gradients(encoder: nn.Module, most: float) -> None:
    """Scale the gradients of an encoder so that their norm, all together, is at most ``most``."""
    gradients = []
    for parameter in encoder.parameters():
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:  # rows may be named several times before they are added up
            parameter.grad = parameter.grad.coalesce()
            gradients.append(parameter.grad._values())
        else:
            gradients.append(parameter.grad)
    if not gradients:
        return
    norm = torch.stack(torch._foreach_norm(gradients)).norm()
    scale = (most / (norm + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(gradients, scale)


class LazyAdam:
    """Adam that leaves the rows alone which a sparse gradient does not name. All weights decay."""

    def __init__(self, encoder: nn.Module, weight_decay: float) -> None:
        self.parameters = dict(encoder.named_parameters())
        self.states = {n: AdamArray.starting(p.data) for n, p in self.parameters.items()}
        self.weight_decay, self.steps = weight_decay, 0
        self.unique = getattr(encoder, "unique_gradients", False)  # no row is named twice

    def step(self, rate: float) -> None:
        self.steps += 1
        adam = Adam(rate, self.weight_decay)
        for name, parameter in self.parameters.items():
            gradient = parameter.grad
            if gradient is None:
                continue
            rows = None
            if gradient.is_sparse:
                if not self.unique:
                    gradient = gradient.coalesce()
                rows, gradient = gradient._indices()[0], gradient._values()
            self.states[name].update(gradient, adam, self.steps, rows=rows)
            parameter.grad = None

    def arrays(self) -> dict[str, torch.Tensor]:
        return {
            f"{name}.{key}": array
            for name, state in self.states.items()
            for key, array in state.arrays().items()
        }

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        for name, state in self.states.items():
            prefix = f"{name}."
            own = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
            state.load(own)
        self.steps = steps


class TorchAdamW:
    """torch's AdamW. Vectors (biases, norms) do not decay."""

    def __init__(self, encoder: nn.Module, weight_decay: float) -> None:
        self.names = [n for n, p in encoder.named_parameters() if p.requires_grad]
        self.parameters = [p for p in encoder.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in self.parameters if p.ndim > 1], "weight_decay": weight_decay},
            {"params": [p for p in self.parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        fused = bool(self.parameters) and self.parameters[0].is_cuda
        self.adam = torch.optim.AdamW(groups, lr=0.0, fused=fused or None) if groups else None

    def step(self, rate: float) -> None:
        if self.adam is None:  # a frozen encoder
            return
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)

    def arrays(self) -> dict[str, torch.Tensor]:
        out = {}
        for name, parameter in zip(self.names, self.parameters, strict=True):
            out[f"{name}.values"] = parameter.data
            state = {} if self.adam is None else self.adam.state.get(parameter, {})
            for key, value in state.items():
                out[f"{name}.{key}"] = torch.as_tensor(value)
        return out

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        for name, parameter in zip(self.names, self.parameters, strict=True):
            parameter.data.copy_(arrays[f"{name}.values"])
            for key in ("step", "exp_avg", "exp_avg_sq"):
                if self.adam is None or f"{name}.{key}" not in arrays:
                    continue
                value = arrays[f"{name}.{key}"]
                on = parameter.device if key != "step" or parameter.is_cuda else "cpu"
                self.adam.state[parameter][key] = value.to(on)


class CompensatedAdamW:
    """AdamW on weights of bfloat16, which it turns those of the encoder into, without a copy of
    them in float32.

    What rounding loses of an update is kept in bfloat16 and added to the next one (Kahan), so that
    updates below the last bit of a weight add up. Moments are float32: a second moment in bfloat16
    would not move by a thousandth of itself. Vectors do not decay.
    """

    def __init__(self, encoder: nn.Module, weight_decay: float) -> None:
        self.parameters = {n: p for n, p in encoder.named_parameters() if p.requires_grad}
        for parameter in self.parameters.values():
            parameter.data = parameter.data.to(torch.bfloat16)
        self.first = {n: torch.zeros_like(p, dtype=torch.float32) for n, p in self._all()}
        self.second = {n: torch.zeros_like(p, dtype=torch.float32) for n, p in self._all()}
        self.lost = {n: torch.zeros_like(p) for n, p in self._all()}
        self.weight_decay, self.steps = weight_decay, 0

    def _all(self) -> list[tuple[str, torch.Tensor]]:
        return [(name, parameter.data) for name, parameter in self.parameters.items()]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        self.steps += 1
        adam = Adam(rate, self.weight_decay)
        correction1 = 1 - adam.beta1**self.steps
        correction2 = (1 - adam.beta2**self.steps) ** 0.5
        for name, parameter in self.parameters.items():
            if parameter.grad is None:
                continue
            gradient, weights = parameter.grad.float(), parameter.data.float()
            first, second = self.first[name], self.second[name]
            first.lerp_(gradient, 1 - adam.beta1)
            second.mul_(adam.beta2).addcmul_(gradient, gradient, value=1 - adam.beta2)
            owed = -(rate / correction1) * first / (second.sqrt() / correction2 + adam.epsilon)
            if parameter.ndim > 1:
                owed -= rate * self.weight_decay * weights
            owed += self.lost[name].float()
            parameter.data.copy_(weights + owed)
            self.lost[name].copy_(owed - (parameter.data.float() - weights))
            parameter.grad = None

    def arrays(self) -> dict[str, torch.Tensor]:
        out = {}
        for name, values in self._all():
            out[f"{name}.values"] = values.view(torch.int16)
            out[f"{name}.lost"] = self.lost[name].view(torch.int16)
            out[f"{name}.first"], out[f"{name}.second"] = self.first[name], self.second[name]
        return out

    def load(self, arrays: dict[str, torch.Tensor], steps: int) -> None:
        for name, values in self._all():
            values.view(torch.int16).copy_(arrays[f"{name}.values"])
            self.lost[name].view(torch.int16).copy_(arrays[f"{name}.lost"])
            self.first[name].copy_(arrays[f"{name}.first"])
            self.second[name].copy_(arrays[f"{name}.second"])
        self.steps = steps
