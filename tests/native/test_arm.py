"""The kernels on an emulated 64-bit ARM processor: ``make arm``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from driver_output import differing

DRIVER = Path(__file__).parents[2] / "build" / "arm" / "threads"


def test_the_kernels_compute_the_same_on_arm() -> None:
    """Same bits for any number of threads, and the sums of x86-64 up to rounding."""
    if not shutil.which("qemu-aarch64"):
        pytest.skip("needs an emulator; on Debian: apt install qemu-user g++-aarch64-linux-gnu")
    if not DRIVER.exists():
        pytest.skip("the driver is not built, which takes minutes: run `make arm` once")
    done = subprocess.run(["qemu-aarch64", DRIVER], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "0 failed" in done.stdout
    assert not differing(done.stdout)
