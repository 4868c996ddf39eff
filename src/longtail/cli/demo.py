"""``longtail demo``: the whole story on data that needs no download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["command"]


def command(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model and the reports.")
    ] = Path("longtail-demo"),
    serve: Annotated[
        bool, typer.Option(help="Start the page at the end (only on a terminal).")
    ] = True,
    port: Annotated[int, typer.Option(help="Port of the page.", min=0, max=65535)] = 8000,
) -> None:
    """Build the ICD-10-CM data, compare three models, write the report and start the page."""
    from longtail.cli.demo_story import tell

    tell(output, serve=serve, port=port)
