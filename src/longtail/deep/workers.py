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
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import torch

__all__ = ["edges", "in_order", "single_threads"]

_AHEAD = 16  # pieces that wait to be added up

_Made = TypeVar("_Made")


# The threads of torch's own pool do not live on in a forked process, which would wait for them.
def _in_child() -> None:
    global _one_thread
    _one_thread = _OneThread()  # nobody is inside, and nobody holds the lock
    _pools.clear()
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_in_child)


def edges(count: int, width: int) -> list[int]:
    """Return where pieces of ``width`` begin and end.

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
    meanwhile. Work must not wait for other work of a pool.
    """
    work = _Work(_pool(min(count, os.cpu_count() or 1)))
    try:
        _one_thread.enter()
        yield work
    finally:
        work.shutdown(cancel_futures=True)
        _one_thread.leave()


# Threads are kept: a process that forks while one of them ends, and gives back what its products
# used, leaves a child in which the next product may never return (seen with MKL).
_pools: dict[int, ThreadPoolExecutor] = {}


def _pool(count: int) -> ThreadPoolExecutor:
    if count not in _pools:
        pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
        _pools.setdefault(count, pool)
    return _pools[count]


class _Work(Executor):
    """What one caller has given to a pool; its end is the end of that, not of the pool."""

    def __init__(self, pool: Executor) -> None:
        self.pool = pool
        self.futures: set[Future[Any]] = set()

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        future = self.pool.submit(*args, **kwargs)
        self.futures.add(future)
        future.add_done_callback(self.futures.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        left = list(self.futures)
        if cancel_futures:
            for future in left:
                future.cancel()
        if wait:
            wait_for(left)


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
