"""Ctrl-C during a long call raises KeyboardInterrupt promptly, and the process lives on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from contract_cases import Case, features

PROMPTLY = 6.0  # seconds; on an idle machine it is a fraction of one


@features
def test_ctrl_c(case: Case) -> None:
    script = Path(__file__).with_name("interrupted.py")
    process = subprocess.Popen(
        [sys.executable, str(script), case.name],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert process.stdout
    try:
        for _ in ("fit", "predict"):
            assert process.stdout.readline() == "working\n"
            time.sleep(1.0)  # so that it is in the middle of a call
            sent = time.time()
            process.send_signal(signal.SIGINT)
            word, when = process.stdout.readline().split()
            assert word == "interrupted" and float(when) - sent < PROMPTLY
        assert process.stdout.readline() == "still sane 5\n"
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
