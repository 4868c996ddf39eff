"""How many weights are left after each epoch of pruning."""

from __future__ import annotations

__all__ = ["SCHEDULES", "kept_after_epoch"]

SCHEDULES = ("gradual", "one_shot")


def kept_after_epoch(
    schedule: str, keep: int, total: int, epoch: int, warmup: int, epochs: int
) -> int:
    """Return weights left after ``epoch`` (counted from 1).

    ``one_shot``: all until the warm-up ends, then ``keep``. ``gradual``: from the end of the
    warm-up to two thirds of the epochs, falling by the cubic of Zhu and Gupta (2017),
    ``keep + (total - keep) (1 - t)^3``. Whatever the warm-up, the last epoch leaves ``keep``.

    >>> [kept_after_epoch("gradual", 100, 1000, epoch, 1, 9) for epoch in (0, 1, 2, 4, 6, 9)]
    [1000, 1000, 560, 157, 100, 100]
    """
    if epoch >= epochs:
        return min(keep, total)
    if epoch < warmup:
        return total
    if schedule == "one_shot":
        return keep
    end = max(warmup + 1, round(epochs * 2 / 3))
    t = min(1.0, (epoch - warmup) / (end - warmup))
    return keep + int((total - keep) * (1 - t) ** 3)
