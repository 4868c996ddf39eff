"""``Group``: the processes that train one network together, as ``torchrun`` starts them.

Every process has the whole encoder and a range of the labels. Of a batch it encodes its share of
the rows; all of them then see all vectors, each learns its labels, and what these say about the
vectors is added up before it goes back through the encoder::

    rows of a batch   ░░░░│░░░░        a share each
    vectors (b, e)    ████████  ◄──    gathered
    labels            ▒▒▒▒│▒▒▒▒        a range each: scores, gradient, update
    gradient (b, e)   ████████  ◄──    summed over labels; back through the encoder, a share each
    encoder           the gradients of all shares are summed, and every process makes the same step

The loss is that of the whole batch and of all labels, so the result is the one of a single process
but for the order of sums, and for encoders that draw or norm over the rows they see: those of a
share, as with batches in pieces. Which process has which labels is nobody's business outside:
checkpoints hold them all and are taken over by any number of processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

__all__ = ["Group"]


class Group:
    """The processes of ``torch.distributed``'s default group; ``rank`` is this one's number."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._sparse: list[bool] | None = None  # whether the gradient of each parameter is

    @classmethod
    def current(cls) -> Group | None:
        """Return the group that the program has initialised; None if there are no others in it."""
        if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
            return None
        return cls()

    def share(self, count: int, rank: int | None = None) -> slice:
        """Return the part of ``count`` things in order that is a process's own; the first ones get
        one more where they cannot all get the same.
        """
        rank = self.rank if rank is None else rank
        each, more = divmod(count, self.size)
        begin = each * rank + min(rank, more)
        return slice(begin, begin + each + (rank < more))

    def check_same(self, what: Any) -> None:
        """Raise ValueError if processes differ in what they are asked to train on."""
        told: list[Any] = [None] * self.size
        dist.all_gather_object(told, what)
        for rank, other in enumerate(told):
            if other != told[0]:
                raise ValueError(
                    f"process {rank} trains on other data or parameters than process 0: every "
                    "process of a group must call fit with the same"
                )

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Add up a tensor of all processes, in place."""
        dist.all_reduce(tensor)
        return tensor

    def all(self, condition: bool, device: torch.device) -> bool:
        """Return whether a condition holds in every process."""
        value = torch.tensor([int(condition)], device=device)
        dist.all_reduce(value, op=dist.ReduceOp.MIN)
        return bool(value.item())

    def gather(self, tensor: torch.Tensor, lengths: Sequence[int] | None = None) -> torch.Tensor:
        """Return the rows of all processes, those of the first one first.

        ``lengths``: how many rows each has; asked for if None.
        """
        if lengths is None:
            own = torch.tensor([len(tensor)], device=tensor.device)
            counts = [torch.zeros_like(own) for _ in range(self.size)]
            dist.all_gather(counts, own)
            lengths = [int(count) for count in counts]
        most = max(lengths)
        padded = tensor.new_zeros((most, *tensor.shape[1:]))
        padded[: len(tensor)] = tensor
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded)
        return torch.cat([part[:n] for part, n in zip(parts, lengths, strict=True)])

    def sum_gradients(self, encoder: nn.Module) -> None:
        """Replace the gradients of an encoder by their sums over all processes.

        A process whose share of the rows was empty has none, and counts as zero. Dense ones travel
        in one piece.
        """
        parameters = [p for p in encoder.parameters() if p.requires_grad]
        if not parameters:
            return
        if self._sparse is None:  # which never changes
            own = [p.grad is not None and p.grad.is_sparse for p in parameters]
            found = torch.tensor(own, dtype=torch.int32, device=parameters[0].device)
            dist.all_reduce(found, op=dist.ReduceOp.MAX)
            self._sparse = [bool(value) for value in found.tolist()]
        dense: dict[torch.dtype, list[nn.Parameter]] = {}
        for parameter, sparse in zip(parameters, self._sparse, strict=True):
            if sparse:
                self._sum_sparse(parameter)
            else:
                dense.setdefault(parameter.dtype, []).append(parameter)
        for same in dense.values():
            flat = torch.cat(
                [
                    torch.zeros_like(p).reshape(-1) if p.grad is None else p.grad.reshape(-1)
                    for p in same
                ]
            )
            parts = self.sum(flat).split([p.numel() for p in same])
            for parameter, part in zip(same, parts, strict=True):
                parameter.grad = part.view_as(parameter)

    def _sum_sparse(self, parameter: nn.Parameter) -> None:
        if parameter.grad is None:
            rows = torch.zeros(0, dtype=torch.int64, device=parameter.device)
            values = parameter.data.new_zeros((0, *parameter.shape[1:]))
        else:
            rows, values = parameter.grad._indices()[0], parameter.grad._values()
        parameter.grad = torch.sparse_coo_tensor(
            self.gather(rows)[None], self.gather(values), parameter.shape, check_invariants=False
        ).coalesce()

    def same_start(self, encoder: nn.Module) -> None:
        """Give every process the encoder of the first one."""
        for tensor in (*encoder.parameters(), *encoder.buffers()):
            dist.broadcast(tensor.data, 0)

    def same_buffers(self, encoder: nn.Module) -> None:
        """Give every process the mean of what encoders note of their own rows (batch norms)."""
        for buffer in encoder.buffers():
            if buffer.is_floating_point():
                self.sum(buffer.data).div_(self.size)

    def wait(self) -> None:
        """Wait until all processes have come here."""
        dist.barrier()
