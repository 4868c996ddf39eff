"""``longtail serve``: a model over HTTP, with its page."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from longtail.cli import options as opt

__all__ = ["command"]


def command(
    model: opt.ModelFolder,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is reachable from here only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", help="Port.", min=0, max=65535)] = 8000,
    workers: Annotated[
        int, typer.Option("--workers", "-w", help="Processes; they share the model.", min=1)
    ] = 1,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="LONGTAIL_TOKEN",
            help="Ask for this bearer token (better set in the environment).",
            show_default=False,
        ),
    ] = None,
    tail: Annotated[
        float, typer.Option(help="Default lean towards rare labels.", min=0.0, max=1.0)
    ] = 0.0,
    max_batch: Annotated[int, typer.Option(help="Most texts in one request.", min=1)] = 1000,
    max_body_mb: Annotated[float, typer.Option(help="Largest request, in MB.", min=0.001)] = 8.0,
    max_waiting: Annotated[
        int, typer.Option(help="Texts that may wait before new requests are refused.", min=1)
    ] = 4000,
    timeout: Annotated[float, typer.Option(help="Seconds for one request.", min=0.001)] = 30.0,
    reload_seconds: Annotated[
        float, typer.Option(help="How often to look for a new model; 0 never.", min=0.0)
    ] = 2.0,
    page: Annotated[bool, typer.Option(help="Serve the page at /.")] = True,
    title: Annotated[
        str | None,
        typer.Option(
            help="What the page calls the model. [default: the name of its folder]",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        bool, typer.Option(help="Log requests and new models to standard error.")
    ] = True,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="A page whose scripts may ask, such as https://example.org; may be repeated, * "
            "for any.",
            show_default=False,
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name that the server is called by, besides localhost and addresses; may be "
            "repeated, * for any.",
            show_default=False,
        ),
    ] = None,
    rate_limit: Annotated[
        float | None,
        typer.Option(help="Requests a second from one address.", min=0.001, show_default=False),
    ] = None,
    max_connections: Annotated[
        int, typer.Option(help="Open connections of a process.", min=1)
    ] = 1000,
    shard: Annotated[
        list[str] | None,
        typer.Option(
            help="For the front of a model that was cut: the address of a shard's server, such as "
            "http://10.0.0.7:8000; repeated, in the order of the shards. It is sent the token.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve a model over HTTP, with a page (POST /predict, GET /labels, /health, /metrics, …).

    Replace the model folder (train --overwrite) and the new model takes over, with no request lost.
    """
    from longtail.serve import Settings, run
    from longtail.serve.hosts import default_hosts

    if token is None:  # an empty variable reads as none
        token = os.environ.get("LONGTAIL_TOKEN")
    hosts = None
    if allowed_host:
        hosts = (*default_hosts(host), *(name.lower() for name in allowed_host))
    run(
        Settings(
            model=str(model),
            token=token,
            tail=tail,
            max_batch=max_batch,
            max_body=int(max_body_mb * 1e6),
            max_waiting=max_waiting,
            timeout=timeout,
            reload_seconds=reload_seconds,
            page=page,
            title=title,
            logs=log,
            origins=tuple(origin.rstrip("/") for origin in cors_origin or ()),
            hosts=hosts,
            rate=rate_limit,
            max_connections=max_connections,
            shards=tuple(shard or ()),
        ),
        host=host,
        port=port,
        workers=workers,
    )
