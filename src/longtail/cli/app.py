"""The commands, gathered."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from longtail import __version__
from longtail.cli import (
    add_labels,
    audit,
    compare,
    datasets,
    demo,
    evaluate,
    explain,
    inspect,
    predict,
    sample,
    serve,
    shard,
    tradeoff,
    train,
    tune,
    vectorize,
)
from longtail.cli.help import Command, Group

__all__ = ["Stopped", "app", "usage_errors"]


class Stopped(Exception):
    """Carries Ctrl-C and closed pipes past typer, which would end the process its own way."""


def untouched(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command, from which Ctrl-C and a closed pipe come out as ``Stopped``."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except (KeyboardInterrupt, BrokenPipeError) as error:
            raise Stopped from error

    return run


app = typer.Typer(
    name="longtail",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Text in, label names out, over very many labels; honest about the rare ones.",
    epilog="Start with:  longtail train data.jsonl -o model",
)

_GROUPS = {
    "Everyday": (train, predict, evaluate, explain, add_labels, serve, vectorize, shard),
    "Choosing": (compare, tradeoff, tune),
    "Looking": (inspect, audit, datasets, sample, demo),
}
for _panel, _modules in _GROUPS.items():
    for _module in _modules:
        _name = _module.__name__.rpartition(".")[2].replace("_", "-")
        app.command(_name, cls=Command, rich_help_panel=_panel)(untouched(_module.command))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"longtail {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Text in, label names out, over very many labels; honest about the rare ones."""


# What a wrong option raises. Typer brings its own copy of click or depends on the package, by its
# version; its own public exception knows which.
usage_errors: tuple[type[Exception], ...] = tuple(
    cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException"
)
