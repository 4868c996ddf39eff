"""What a server is told, as plain data that travels to its worker processes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

__all__ = ["Settings"]

_VARIABLE = "LONGTAIL_SERVE_SETTINGS"


@dataclass(frozen=True)
class Settings:
    """Limits and switches of a server.

    ``model``: folder; ``token``: bearer token asked of clients, None for none; ``tail``: default
    lean towards rare labels; ``max_batch``: texts in one request; ``max_body``: bytes of one;
    ``max_waiting``: texts that may wait before requests are refused with 503; ``timeout``: seconds
    for one request, from its first byte; ``reload_seconds``: how often the folder is looked at for
    a new model, 0 never; ``page``: whether to serve the page; ``counters``: file that the worker
    processes share their numbers in, None for a single process.
    """

    model: str
    token: str | None = None
    tail: float = 0.0
    max_batch: int = 1000
    max_body: int = 8_000_000
    max_waiting: int = 4000
    timeout: float = 30.0
    reload_seconds: float = 2.0
    page: bool = True
    counters: str | None = None

    def put_in_environment(self) -> None:
        """Worker processes are started anew and find their settings here."""
        os.environ[_VARIABLE] = json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> Settings:
        return cls(**json.loads(os.environ[_VARIABLE]))
