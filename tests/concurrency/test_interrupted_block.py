"""Ctrl-C ends a single long block of labels on any solver, without waiting for its end."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.linear.train import together

SCRIPT = """
import signal, threading
import numpy as np, scipy.sparse as sp
import longtail as lt

rng = np.random.default_rng(0)
X = sp.random(60_000, 500, 0.2, "csr", rng=rng).astype(np.float32)
Y = sp.csr_matrix((rng.random((60_000, 16)) < 0.3).astype(np.float32))
threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
try:
    lt.{model}(n_jobs={threads}, C=100.0, {params}).fit(X, Y)
except KeyboardInterrupt:
    print("interrupted")
"""


DUAL = 'solver="dual", tolerance=1e-30, max_iter=1_000_000'
NEWTON = 'solver="newton", loss="logistic", tolerance=1e-30, max_iter=1_000_000, l1=0.01'
LEVELS = f"tree=lt.tree.LabelTree(level_sizes=[2, 4]), {DUAL}"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("model", "params"),
    [
        ("OneVsAll", DUAL),
        ("OneVsAll", NEWTON),
        pytest.param("XRLinear", LEVELS, id="levels that wait for seats"),
    ],
)
def test_one_block(model: str, params: str, threads: int) -> None:
    script = SCRIPT.format(model=model, params=params, threads=threads)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_ctrl_c_while_levels_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The levels that have started stop, too."""

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> Any:
            super().submit(*args, **kwargs)
            raise KeyboardInterrupt

    monkeypatch.setattr(together, "ThreadPoolExecutor", Interrupted)
    endless = {"solver": "dual", "tolerance": 1e-30, "max_iter": 1_000_000_000, "C": 100.0}
    tree = lt.tree.LabelTree(level_sizes=[2, 4])
    rng = np.random.default_rng(0)
    X, Y = rng.random((20_000, 50), np.float32), rng.integers(0, 2, (20_000, 16))
    with pytest.raises(KeyboardInterrupt):
        lt.XRLinear(n_jobs=2, tree=tree, **endless).fit(sp.csr_matrix(X), sp.csr_matrix(Y))
