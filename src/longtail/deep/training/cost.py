"""``Cost``: what a training will take, before it starts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost:
    """``memory``: bytes on the device by what they hold; ``seconds``: of one epoch by what is done
    in it. Printed, it is a small table.
    """

    device: str
    memory: dict[str, int]
    seconds: dict[str, float]
    epochs: int

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
        return "\n".join(lines)
