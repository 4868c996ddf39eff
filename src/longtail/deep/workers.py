"""Work in pieces whose results do not depend on who does them.

On a CPU each piece is the work of one thread of a pool, and what the pieces contribute is added in
their order. Left to torch, a product of several threads cuts its sums as it likes, so that the last
bits depend on their number; and threads that wait for each other by spinning, on a core that
another program uses, take many times as long as one alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

import torch

__all__ = ["edges", "in_order", "single_threads"]

_AHEAD = 16  # pieces that wait to be added up

_Made = TypeVar("_Made")


# The threads of torch's own pool do not live on in a forked process, which would wait for them.
def _in_child() -> None:
    global _one_thread
    _one_thread = _OneThread()  # nobody is inside, and nobody holds the lock
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_in_child)


def edges(count: int, width: int) -> list[int]:
    """Where pieces of ``width`` begin and end.

    >>> edges(10, 4)
    [0, 4, 8, 10]
    """
    return [*range(0, count, max(1, width)), count]


def in_order(
    pool: Executor | None, work: Callable[[slice], _Made], bounds: list[int]
) -> Iterator[_Made]:
    """Yield what ``work`` makes of every piece, in order; with a pool, some ahead at a time."""
    parts = [slice(*edge) for edge in pairwise(bounds)]
    if pool is None:
        yield from map(work, parts)
        return
    for begin in range(0, len(parts), _AHEAD):
        yield from pool.map(work, parts[begin : begin + _AHEAD])


@contextmanager
def single_threads(count: int) -> Iterator[Executor]:
    """Yield a pool of ``count`` threads, each of which runs torch on one thread, as the caller does
    meanwhile.
    """
    pool = ThreadPoolExecutor(
        min(count, os.cpu_count() or 1), initializer=torch.set_num_threads, initargs=(1,)
    )
    try:
        _one_thread.enter()
        yield pool
    finally:
        pool.shutdown()
        _one_thread.leave()


class _OneThread:
    """torch on one thread while anybody wants that: its number of threads is the whole process's,
    and who leaves first must not change it for the others.
    """

    def __init__(self) -> None:
        self.lock, self.inside, self.before = threading.Lock(), 0, 1

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.before = torch.get_num_threads()
            self.inside += 1
            torch.set_num_threads(1)

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            torch.set_num_threads(1 if self.inside else self.before)


_one_thread = _OneThread()
