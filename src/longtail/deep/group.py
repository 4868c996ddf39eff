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
checkpoints hold them all and are taken over by any number of processes. What is not cut into shares
(clusters of rows, linear solvers) the first process does for all (``made_once``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

__all__ = ["Group", "made_once"]

T = TypeVar("T")

_STILL_AT_IT = 60.0  # seconds between words to those who wait, who would give up after minutes


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

    def share_of_labels(self, count: int) -> slice:
        """Return the labels of this process; raise ValueError if there is not one for each."""
        if count < self.size:
            raise ValueError(f"{count} labels cannot be shared out among {self.size} processes")
        return self.share(count)

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
        if dist.get_backend() == "nccl" and not tensor.is_cuda:  # which moves no others
            return self.gather(tensor.cuda(), lengths).to(tensor.device)
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

    def best(
        self, ids: torch.Tensor, scores: torch.Tensor, k: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and scores (b, k) of the best among the candidates (b, c) of all processes,
        best first; of equal scores the smaller id comes first.
        """
        ids, scores = self.gather(ids.T.contiguous()).T, self.gather(scores.T.contiguous()).T
        ids, order = ids.sort(dim=1)
        scores = scores.gather(1, order)
        order = scores.sort(dim=1, descending=True, stable=True).indices[:, :k]
        return ids.gather(1, order), scores.gather(1, order)

    def from_first(self, make: Callable[[], T]) -> T:
        """Return in every process what the first one makes; its error is raised in all of them.

        The others wait as long as it takes, beyond the timeout of the group.
        """
        box: list[Any] = [None]
        if self.rank == 0:
            try:
                with self._still_at_it():
                    made = make()
            except Exception as error:
                dist.broadcast_object_list([(None, f"{type(error).__name__}: {error}")], 0)
                raise
            dist.broadcast_object_list([(made, None)], 0)
            return made
        while box[0] is None:
            dist.broadcast_object_list(box, 0)
        found, failed = box[0]
        if failed is not None:
            raise RuntimeError(f"process 0 failed with {failed}")
        return found  # type: ignore[no-any-return]

    @contextmanager
    def _still_at_it(self) -> Iterator[None]:
        """Tell those who wait for this process every now and then that it is still there."""
        done = threading.Event()

        def tell() -> None:
            while not done.wait(_STILL_AT_IT):
                dist.broadcast_object_list([None], 0)

        telling = threading.Thread(target=tell, daemon=True)
        telling.start()
        try:
            yield
        finally:
            done.set()
            telling.join()

    def first_gradients(self, module: nn.Module) -> None:
        """Give every process the gradients of the first one: all have computed the same, and stay
        the same where their processors round differently.
        """
        parameters = [p for p in module.parameters() if p.grad is not None]
        flat = torch.cat([p.grad.reshape(-1) for p in parameters])  # type: ignore[union-attr]
        dist.broadcast(flat, 0)
        parts = flat.split([p.numel() for p in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)

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
        """Give every process the weights of the first one."""
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


def made_once(group: Group | None, make: Callable[[], T]) -> T:
    """Return what ``make`` returns; in a group, the first process calls it for all."""
    return make() if group is None else group.from_first(make)
