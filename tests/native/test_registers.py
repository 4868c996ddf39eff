"""The inner loops of the solvers keep their sums in registers, whatever the instruction set.

A walk over the non-zeros of a row is a loop of loads and multiply-adds, a line of 16 labels per
non-zero, and nothing else. Where a compiler puts a sum on the stack, every line costs several times
as many instructions: that is invisible to every other test.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

BUILD = Path(__file__).parents[2] / "build"
SOLVERS = re.compile(r"descend<|solve_dual|solve_newton|lane_objective|Newton<|Direction<")


class Machine(NamedTuple):
    objects: Path
    objdump: str
    registers: int  # for 16 floats
    most: float  # instructions per non-zero of the fastest walk
    multiply: str = r"v?(fn?madd|mul)\w*ps\b"
    spill: str = r"v?mov\w+\s+%[xyz]mm\d+,\S*\(%r[sb]p"


DEV, ARM = BUILD / "dev" / "CMakeFiles", BUILD / "arm" / "cpp" / "kernels"
MACHINES = {
    "avx512": Machine(DEV / "kernels_avx512.dir", "objdump", 1, 6.0),
    "avx2": Machine(DEV / "kernels_avx2.dir", "objdump", 2, 8.0),
    "sse2": Machine(DEV / "kernels_portable.dir", "objdump", 4, 20.0),  # no multiply-add there
    "neon": Machine(
        ARM, "aarch64-linux-gnu-objdump", 4, 12.0, r"f(mla|mul)\s+v", r"st[rp]\s+q.*\[sp"
    ),
}


class Loop(NamedTuple):
    function: str
    body: list[str]

    def count(self, pattern: str) -> int:
        return sum(bool(re.match(pattern, line)) for line in self.body)


def functions(code: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    for part in re.split(r"\n(?=[0-9a-f]+ <)", code):
        head, _, body = part.partition(":\n")
        lines = re.findall(r"^ +([0-9a-f]+):\t(.*)$", body, re.MULTILINE)
        yield head, [(int(at, 16), re.sub(r"\s+", " ", line)) for at, line in lines]


def straight_loops(code: str) -> Iterator[Loop]:
    """What lies between a conditional jump backwards and its target, and has no other jump."""
    jump = re.compile(r"(?:j|b$|b\.|b |cb|tb)\S* ?.*?\b([0-9a-f]+) <")
    for name, body in functions(code):
        jumps = [(at, line, jump.match(line)) for at, line in body]
        for at, line, found in jumps:
            if not found or line.startswith(("jmp", "b ")) or int(found[1], 16) > at:
                continue
            begin = int(found[1], 16)
            if not any(other and begin <= there < at for there, _, other in jumps):
                yield Loop(name, [line for there, line in body if begin <= there <= at])


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> Machine:
    found: Machine = MACHINES[request.param]
    if not found.objects.is_dir():
        pytest.skip("needs the objects of `make setup` on x86-64 Linux, or of `make arm`")
    if not shutil.which(found.objdump):
        pytest.skip(f"needs {found.objdump}")
    return found


def test_no_sum_is_on_the_stack(machine: Machine) -> None:
    walks = []
    for path in machine.objects.rglob("*.o"):
        command = [machine.objdump, "-d", "-C", "--no-show-raw-insn", str(path)]
        code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        walks += [
            loop
            for loop in straight_loops(code)
            if SOLVERS.search(loop.function) and loop.count(machine.multiply) >= machine.registers
        ]
    assert len(walks) > 10
    for loop in walks:
        assert not loop.count(machine.spill), loop
    for solver in ("descend<|solve_dual", "Newton|solve_newton"):
        lengths = [
            len(loop.body) * machine.registers / loop.count(machine.multiply)
            for loop in walks
            if re.search(solver, loop.function)
        ]
        assert min(lengths) <= machine.most


def test_the_check_would_notice() -> None:
    spilled = """0000 <solve_dual>:
   0:\tvmulps (%rax),%ymm0,%ymm1
   4:\tvmovaps %ymm1,-0x40(%rbp)
   8:\tjne    0 <solve_dual>
   c:\tret
"""
    (loop,) = straight_loops(spilled)
    assert len(loop.body) == 3
    assert loop.count(MACHINES["avx2"].multiply) == 1 and loop.count(MACHINES["avx2"].spill) == 1
