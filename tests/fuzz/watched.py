"""Cases run in a child process under watch: none may crash it, hang, or raise what is no error.

    tried = run(cases, case)      # case(name) does one thing

The child writes down which case it is at in memory that both processes see. If it dies, the case it
was at is a crash; if it stays at one for too long it is killed, and that is a hang. Either way a
new child goes on with the next case. Its memory is bounded, so that a case that asks for everything
gets a MemoryError and not the machine.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import resource
import signal
import struct
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Outcome", "run"]

HANG = 10.0  # seconds
_ROOM = 2 << 30  # bytes that a child may take beyond what it starts with
# What a user may be told. Others are faults of ours.
TOLD = (AttributeError, LookupError, MemoryError, OSError, TypeError, ValueError)
TOLD += (ImportError, RuntimeError, KeyboardInterrupt)


@dataclass
class Outcome:
    """How many cases ended in which way; ``faults`` are crashes, hangs and errors of ours."""

    ends: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __add__(self, other: Outcome) -> Outcome:
        faults = self.faults + other.faults
        return Outcome(self.ends + other.ends, faults, self.seconds + other.seconds)

    def __str__(self) -> str:
        ends = ", ".join(f"{n:,} {end}" for end, n in self.ends.most_common())
        return f"{sum(self.ends.values()):,} cases in {self.seconds:.0f} s: {ends}"


def run(names: Sequence[Any], case: Callable[[Any], Any], *, room: int = _ROOM) -> Outcome:
    """Tries ``case(name)`` for every name."""
    out, began, first = Outcome(), time.monotonic(), 0
    while first < len(names):
        place = mmap.mmap(-1, 16)  # number of the case, and when it began
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _work(names, first, case, place, writer, room)
        os.close(writer)
        ended, told = _watch(child, place, reader)
        lines = told.split("\n")[:-1]
        for line in lines:
            end, _, fault = line.partition("\t")
            out.ends[end] += 1
            if fault:
                out.faults.append(fault)
        first += len(lines)
        if ended and first < len(names):
            out.ends[ended] += 1
            out.faults.append(f"{ended}: {names[first]!r}")
            first += 1
        place.close()
    out.seconds = time.monotonic() - began
    return out


def _work(
    names: Sequence[Any], first: int, case: Any, place: mmap.mmap, writer: int, room: int
) -> None:
    """The child: never returns."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    faulthandler.disable()  # a crash is told by the watch
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # ONNX Runtime prints what it thinks of a file
    os.dup2(nowhere, 2)
    code = 1
    try:
        with open(writer, "w", buffering=1) as lines:
            for number in range(first, len(names)):
                place[:] = struct.pack("qd", number, time.monotonic())
                lines.write(_end(names[number], case) + "\n")
        code = 0
    finally:
        os._exit(code)


def _end(name: Any, case: Any) -> str:
    try:
        case(name)
    except BaseException as error:
        if isinstance(error, TOLD) and not isinstance(error, NotImplementedError):
            return type(error).__name__
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} {error} at {where.filename}:{where.lineno}: {name!r}"
        return f"{type(error).__name__}\t{' '.join(text.split())[:500]}"
    return "passed"


def _watch(child: int, place: mmap.mmap, reader: int) -> tuple[str, str]:
    """How the child ended ("" if well), and what it wrote."""
    told, hung = [], False
    os.set_blocking(reader, False)
    while True:
        over = os.waitpid(child, os.WNOHANG)
        try:
            while part := os.read(reader, 1 << 16):
                told.append(part)
        except BlockingIOError:
            pass
        if over[0]:
            os.close(reader)
            status = os.waitstatus_to_exitcode(over[1])
            end = "" if status == 0 else "hang" if hung else f"crash ({status})"
            return end, b"".join(told).decode()
        _, since = struct.unpack("qd", place[:])
        if since and time.monotonic() - since > HANG and not hung:
            hung = True
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
