"""Options that commands share, with one wording and one meaning each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Data",
    "Delimiter",
    "Device",
    "FieldWeights",
    "Jobs",
    "Json",
    "LabelColumn",
    "LabelSeparator",
    "LabelTargets",
    "LabelTextField",
    "LabelTexts",
    "LearnLabelTexts",
    "Layout",
    "ModelFolder",
    "Seed",
    "TextColumn",
]

_DATA = "Where the data comes from"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.csv, .tsv, .jsonl, .parquet, fastText or 'N D L' text, also .gz), a folder, "
        "the name of a data set, or - for JSON lines on standard input.",
        show_default=False,
    ),
]
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A folder made by train.", show_default=False)
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        help="Column of the text, or several: title,abstract. [default: text]",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        help="Column of the labels. [default: labels]", rich_help_panel=_DATA, show_default=False
    ),
]
LabelSeparator = Annotated[
    str | None,
    typer.Option(
        help="What stands between labels in one cell, such as ';'.",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What stands between the cells of a CSV file, if not a comma.",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where a network is trained: cpu, cuda, cuda:1, …; mach and declare use one then.",
        show_default=False,
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        help="What text-network, xr-transformer, dual-encoder and unidec read texts with: the "
        "folder of a pretrained encoder, its name on the Hugging Face hub, or average or "
        "convolution, which begin from nothing.",
        show_default=False,
    ),
]
Layout = Annotated[
    str | None,
    typer.Option(
        help="How a folder is laid out, where it does not tell.",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
FieldWeights = Annotated[
    str | None,
    typer.Option(
        help="Keep text columns apart and weigh them: title=2,abstract=1.",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
LabelTexts = Annotated[
    Path | None,
    typer.Option(
        help="File with the texts of labels: JSON lines with label and text, or a .tsv.",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
LabelTextField = Annotated[
    str | None,
    typer.Option(
        help="Field of the label file to take texts from, such as text_en. [default: text]",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
LearnLabelTexts = Annotated[
    bool, typer.Option(help="Learn from the texts of labels too: finds more rare labels.")
]
LabelTargets = Annotated[
    str | None,
    typer.Option(
        help="Learn from the texts of labels what else they go with: co-occurrence (Gandalf), or "
        "the share from which on it counts, such as 0.5; symmetric, random-walk; or self, which is "
        "--learn-label-texts.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Threads. [default: all cores]", min=1)
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
