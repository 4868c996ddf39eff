"""Pools of threads: kept between callers, and a caller's end is the end of its own work."""

from __future__ import annotations

import os
import threading
import time

import pytest
import torch

from longtail.deep.workers import single_threads


def idents(count: int) -> set[int]:
    with single_threads(count) as pool:
        barrier = threading.Barrier(count)

        def who(_: int) -> int:
            barrier.wait(10)
            return threading.get_ident()

        return set(pool.map(who, range(count)))


def test_threads_outlive_their_caller() -> None:
    # a fork while a thread ends, and gives back what its products used, can leave a child in which
    # the next product does not return
    first = idents(2)
    assert idents(2) == first
    assert first <= {thread.ident for thread in threading.enumerate()}


def test_torch_has_one_thread_inside_and_as_many_as_before_outside() -> None:
    before = torch.get_num_threads()
    with single_threads(2) as pool:
        inside = pool.submit(torch.get_num_threads).result()
        assert inside == torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_an_error_ends_the_work_of_its_caller_alone() -> None:
    done, other = [], []
    hold = threading.Event()

    def slow(i: int) -> None:
        time.sleep(0.05)
        done.append(i)

    with single_threads(2) as mine:
        waiting = mine.submit(hold.wait, 10)
        with pytest.raises(RuntimeError, match="stop"), single_threads(2) as pool:
            futures = [pool.submit(slow, i) for i in range(50)]
            raise RuntimeError("stop")
        count = len(done)
        assert all(future.done() for future in futures) and count < 50
        hold.set()
        assert waiting.result() is True
        other.append(mine.submit(lambda: 1).result())
    time.sleep(0.12)
    assert len(done) == count and other == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    idents(2)
    child = os.fork()
    if child == 0:
        with single_threads(2) as pool:
            right = pool.submit(lambda: float(torch.ones(64, 64).mm(torch.ones(64, 64))[0, 0]))
            os._exit(0 if right.result(20) == 64 else 1)
    assert os.waitpid(child, 0)[1] == 0
