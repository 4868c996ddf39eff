"""One build runs on older machines: newer instructions stay in the files that are dispatched to.

Two ways they could leak: a flag on the wrong file, or a template that is instantiated in a file
compiled for AVX-512 and kept by the linker for everybody.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[1] / "build" / "dev" / "CMakeFiles"

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux"
    or platform.machine() != "x86_64"
    or not BUILD.is_dir()
    or not shutil.which("objdump"),
    reason="needs the objects of `make setup` on x86-64 Linux, and binutils",
)


def run(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def objects(*targets: str) -> list[Path]:
    found = [path for target in targets for path in (BUILD / f"{target}.dir").rglob("*.o")]
    assert found
    return found


def test_what_every_machine_runs_has_no_wide_registers() -> None:
    for path in objects("kernels", "kernels_portable", "_core"):
        code = run("objdump", "-d", "--no-show-raw-insn", path)
        assert "%ymm" not in code and "%zmm" not in code, path


def test_files_for_newer_machines_share_nothing() -> None:
    for path in objects("kernels_avx2", "kernels_avx512"):
        symbols = [line.split() for line in run("nm", path).splitlines()]
        assert not [s for s in symbols if s[-2] in "WVu" and "DW.ref" not in s[-1]], path


def test_the_check_would_notice() -> None:
    assert any("%zmm" in run("objdump", "-d", path) for path in objects("kernels_avx512"))
