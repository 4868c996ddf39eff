"""``Cost``: what a training will take, before it starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost:
    """``memory``: bytes on the device by what they hold; ``seconds``: of one epoch by what is done
    in it; ``choices``: bytes in all with other output layers, by name. Printed, it is a small
    table.
    """

    device: str
    memory: dict[str, int]
    seconds: dict[str, float]
    epochs: int
    choices: dict[str, int] = field(default_factory=dict)
    memory_limit: int | None = None

    @property
    def best(self) -> str | None:
        """The first of the choices that fits ``memory_limit``; None where there is none."""
        limit = math.inf if self.memory_limit is None else self.memory_limit
        return next((name for name, size in self.choices.items() if size <= limit), None)

    @property
    def total_memory(self) -> int:
        """Bytes, all together."""
        return sum(self.memory.values())

    @property
    def total_seconds(self) -> float:
        """Seconds of one epoch, all together."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        lines = [f"One of {self.epochs} epochs on {self.device}:"]
        rows = [(name, f"{size / 2**30:,.2f} GiB") for name, size in self.memory.items()]
        rows.append(("memory in all", f"{self.total_memory / 2**30:,.2f} GiB"))
        rows += [(name, f"{seconds:,.1f} s") for name, seconds in self.seconds.items()]
        rows.append(("time in all", f"{self.total_seconds:,.1f} s"))
        widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
        lines += [f"  {name:<{widths[0]}}  {value:>{widths[1]}}" for name, value in rows]
        if self.choices:
            lines.append("Memory in all with other output layers:")
            width = max(map(len, self.choices))
            lines += [
                f"  {name:<{width}}  {size / 2**30:,.2f} GiB" for name, size in self.choices.items()
            ]
        if self.memory_limit is not None:
            lines.append(
                f"The first that fits {self.memory_limit / 2**30:,.2f} GiB: {self.best or 'none'}"
            )
        return "\n".join(lines)
