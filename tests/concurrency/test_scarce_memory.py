"""Where memory is short, as many threads start as can, and nothing aborts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Forks a child per amount of room, which is what the address space may grow by, in MB.
SWEEP = """
import os, resource
import longtail as lt
data = lt.data.make_longtail(n=400, d=300, L=60, random_state=0)
X, Y = data.train.X, data.train.Y
expected = lt.OneVsAll(n_jobs=1).fit(X, Y).predict_topk(X, k=3)
for room in (8, 24, 40, 60, 80, 110, 150, 200, 300, 1000):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20),) * 2)
            found = lt.OneVsAll(n_jobs=1000).fit(X, Y).predict_topk(X, k=3)
            code = 0 if found == expected else 2
        except MemoryError:
            code = 0
        finally:
            os._exit(code)
    print(room, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="sanitizers need memory of their own")
def test_a_thousand_threads_in_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", SWEEP], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    codes = [line.split() for line in done.stdout.splitlines()]
    assert len(codes) == 10 and all(code == "0" for _, code in codes), done.stdout + done.stderr
