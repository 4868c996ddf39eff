"""``longtail evaluate``: how good a model is, on data with labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli import options as opt
from longtail.cli.models import load_tagger
from longtail.cli.output import note, print_json
from longtail.cli.reading import DataOptions, read

__all__ = ["command", "cutoffs"]


def command(
    model: opt.ModelFolder,
    data: opt.Data,
    split: Annotated[
        str, typer.Option(help="train, dev, test; auto is test where there is one.")
    ] = "auto",
    k: Annotated[str, typer.Option("-k", "--k", help="Cut-offs, as in 1,3,5.")] = "1,3,5",
    tail: Annotated[
        float, typer.Option(help="Lean towards rare labels, 0 to 1.", min=0.0, max=1.0)
    ] = 0.0,
    report: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.")] = None,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    label_separator: opt.LabelSeparator = None,
    delimiter: opt.Delimiter = None,
    layout: opt.Layout = None,
    json: opt.Json = False,
) -> None:
    """Measure a model on texts with known labels: every metric, head to tail, with warnings.

    Labels that the model does not know are counted, and the report says how many.
    """
    ks = cutoffs(k)
    tagger = load_tagger(model)
    weights = None if tagger.fields_ is None else dict.fromkeys(tagger.fields_, 1.0)
    source = read(
        data,
        DataOptions(text_column, label_column, label_separator, delimiter, layout, weights),
    )
    name, part = source.split(split)
    measured = tagger.evaluate(
        part.texts,
        part.Y,
        label_names=source.label_names,
        unknown=part.unknown,
        k=ks,
        tail=tail,
        title=f"{model.name} on {source.name}, {name} split",
    )
    if report is not None:
        measured.to_html(report)
        note(f"report: {report}")
    if json:
        print_json(measured.to_dict())
    else:
        print(measured)


def cutoffs(text: str) -> list[int]:
    """``1,3,5`` as numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"-k: expected numbers such as 1,3,5, got {text!r}") from None
