"""``longtail add-labels``: labels that a model finds by what they are called, without training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli import options as opt

__all__ = ["command"]


def command(
    model: opt.ModelFolder,
    labels: Annotated[
        Path,
        typer.Argument(
            help="File with the new labels: JSON lines with label and text, or a .tsv.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the model. [default: the model's own]"),
    ] = None,
    label_text_field: opt.LabelTextField = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a model that is there.")] = False,
) -> None:
    """Add labels that have a text and no training row (dual-encoder, unidec)."""
    import longtail as lt
    from longtail.data.label_file import read_label_file

    found = read_label_file(labels, text_field=label_text_field or "text")
    if found.texts is None:
        raise ValueError(f"{labels} has names only: the model finds labels by their texts")
    tagger = lt.load(model)
    if not isinstance(tagger, lt.Tagger):
        raise ValueError(f"{model} holds a {type(tagger).__name__}: train one with longtail train")
    tagger.add_labels(label_texts=dict(zip(found.names, found.texts, strict=True)))
    tagger.save(output or model, overwrite=overwrite or output is None)
    print(
        f"{len(found.names):,} labels added, {len(tagger.label_names):,} in all: {output or model}"
    )
