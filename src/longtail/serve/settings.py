"""What a server is told, as plain data that travels to its worker processes."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Settings"]

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+")


@dataclass(frozen=True)
class Settings:
    """Limits and switches of a server.

    ``model``: folder; ``token``: bearer token asked of clients, None for none; ``tail``: default
    lean towards rare labels; ``max_batch``: texts in one request; ``max_body``: bytes of one;
    ``max_waiting``: texts that may wait before requests are refused with 503; ``timeout``: seconds
    for one request, from its first byte; ``reload_seconds``: how often the folder is looked at for
    a new model, 0 never; ``page``: whether to serve the page; ``title``: what the page calls the
    model, None for the name of its folder; ``logs``: whether requests and new models are logged to
    standard error; ``origins``: other pages, as ``https://example.org``, whose scripts may ask
    (CORS), "*" for any; ``hosts``: names that the server
    answers to (``longtail.serve.hosts``), None for loopback's; ``rate``: requests that a client may
    send a second, None for any number; ``max_connections``: of one process; ``header_seconds``: for
    a client to say what it wants; ``write_seconds``: for it to read some of the answer; ``shards``:
    addresses of the servers of the shards, for a model that was cut (``longtail shard``); they are
    sent the same token; ``n_workers``: processes; ``counters`` and ``copies``: a file and a folder
    that they share their numbers and the model in, None for a single process.
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
    title: str | None = None
    logs: bool = True
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] | None = None
    rate: float | None = None
    max_connections: int = 1000
    header_seconds: float = 10.0
    write_seconds: float = 20.0
    shards: tuple[str, ...] = ()
    n_workers: int = 1
    counters: str | None = None
    copies: str | None = None

    def __post_init__(self) -> None:
        for origin in self.origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"{origin!r} is no origin: give scheme, name and port, as in "
                    "https://example.org:8443, or *"
                )
        if self.token is not None and not self.token.strip():
            raise ValueError(
                "the token is empty: set one, or leave it out to ask for none "
                "(unset LONGTAIL_TOKEN)"
            )
