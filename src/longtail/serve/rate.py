"""How many requests a client may send."""

from __future__ import annotations

import time
from collections import OrderedDict

__all__ = ["RateLimit"]

_MOST_CLIENTS = 10_000  # that are remembered


class RateLimit:
    """A bucket for each client: ``per_second`` requests flow in, and two seconds' worth fit.

    >>> limit = RateLimit(1.0)
    >>> [limit.wait("a", at) for at in (0.0, 0.0, 0.0, 1.0)]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, per_second: float) -> None:
        self.per_second = per_second
        self.most = max(1.0, 2 * per_second)
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, and when

    def wait(self, client: str, now: float | None = None) -> float:
        """Return 0 if one more request of the client may pass; else the seconds until it may."""
        now = time.monotonic() if now is None else now
        left, at = self._clients.pop(client, (self.most, now))
        left = min(self.most, left + (now - at) * self.per_second)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self.per_second
        self._clients[client] = (left if wait else left - 1.0, now)
        if len(self._clients) > _MOST_CLIENTS:
            self._clients.popitem(last=False)
        return wait
