"""``longtail sample``: a small data set with a real tail, as files to try things on."""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.output import note

__all__ = ["command"]

_FILES = ("diagnoses.csv", "new-diagnoses.csv", "codes.tsv")


def command(
    folder: Annotated[Path, typer.Argument(help="Where to put the files.")] = Path(),
    overwrite: Annotated[bool, typer.Option(help="Replace files that are there.")] = False,
) -> None:
    """Copy a sample: 735 diagnoses with their ICD-10-CM codes, 57 new ones, and what codes mean.

    Respiratory diseases, in the public domain. Most of the codes have one or two texts.

    Next:  longtail train diagnoses.csv -o model --label-separator ';' --label-texts codes.tsv
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        if (folder / name).exists() and not overwrite:
            raise FileExistsError(f"{folder / name} exists: pass --overwrite, or another folder")
    source = importlib.resources.files("longtail.data").joinpath("samples")
    for name in _FILES:
        (folder / name).write_bytes(source.joinpath(name).read_bytes())
        note(f"{folder / name}")
