"""``longtail shard``: a model cut by labels, for several servers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli import options as opt
from longtail.cli.output import note

__all__ = ["command"]


def command(
    model: opt.ModelFolder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the parts.", show_default=False)
    ],
    shards: Annotated[int, typer.Option("--shards", "-n", help="How many.", min=1)] = 2,
    overwrite: Annotated[bool, typer.Option(help="Replace parts that are there.")] = False,
) -> None:
    """Cut a model by labels, for as many servers; together they answer as the whole one does.

    Each shard is served by itself, and the front, which knows texts and label names, asks them:

        longtail serve parts/shard-0 -p 8001
        longtail serve parts/shard-1 -p 8002
        longtail serve parts/front --shard http://127.0.0.1:8001 --shard http://127.0.0.1:8002

    Example:  longtail shard model -o parts -n 2
    """
    import longtail as lt
    from longtail.tagger import Tagger
    from longtail.tagger.sharding import shard_tagger

    tagger = lt.load(model)
    if not isinstance(tagger, Tagger):
        raise TypeError(f"{model} holds a {type(tagger).__name__}: cut a model made by train")
    front, parts = shard_tagger(tagger, shards)
    for i, part in enumerate(parts):
        part.save(output / f"shard-{i}", overwrite=overwrite)
        note(f"{output / f'shard-{i}'}")
    front.save(output / "front", overwrite=overwrite)
    note(f"{output / 'front'}")
