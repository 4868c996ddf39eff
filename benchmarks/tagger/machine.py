"""What a benchmark runs on, and by which command."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

import longtail as lt


def print_machine() -> None:
    """Print the processor, the load, the versions and the command."""
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    cpu = model[1] if model else platform.machine()
    print(
        f"{cpu}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, longtail {lt.__version__}, "
        f"Python {platform.python_version()}"
    )
    print("python", *sys.argv)
