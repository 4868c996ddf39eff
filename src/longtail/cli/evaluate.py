"""``longtail evaluate``: how good a model, or another system, is on data with labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import load_tagger
from longtail.cli.output import check_writable, note, print_json
from longtail.cli.provenance import measured_now
from longtail.cli.reading import DataOptions, read, split_of

__all__ = ["command", "cutoffs"]


def command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A folder made by train. With --predictions there is none: give DATA alone.",
            show_default=False,
        ),
    ],
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Texts with known labels.", show_default=False),
    ] = None,
    predictions: Annotated[
        str | None,
        typer.Option(
            help="Measure these answers instead of a model's, of whatever system: a table with "
            "labels by name, best first (.jsonl, .csv, .tsv, .parquet), as predict writes it.",
            show_default=False,
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            help="With --predictions: column of ids in both files. [default: row by row]",
            show_default=False,
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            help="With --predictions: the data that the system learned from, so that rare labels "
            "can be told from frequent ones.",
            show_default=False,
        ),
    ] = None,
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

    Columns and separators are those of the training unless you say otherwise. Labels that the
    model does not know are counted, and the report says how many.

    Examples:

    longtail evaluate model later.csv

    longtail evaluate --predictions answers.jsonl later.csv --id-column id
    """
    ks = cutoffs(k)
    check_writable(report, "--report")
    said = DataOptions(text_column, label_column, label_separator, delimiter, layout)
    if predictions is not None:
        from longtail.cli.score import score_predictions

        if data is not None:
            raise ValueError(
                f"--predictions measures answers without a model: give DATA alone, not {model} too"
            )
        if tail:
            raise ValueError("--tail goes with a model, not with --predictions")
        measured = score_predictions(predictions, model, train, said, split, id_column, ks)
    else:
        if data is None:
            raise ValueError("evaluate needs MODEL and DATA, or --predictions FILE and DATA")
        for flag, value in (("--id-column", id_column), ("--train", train)):
            if value is not None:
                raise ValueError(f"{flag} goes with --predictions")
        measured = _of_model(Path(model), data, said, split, ks, tail)
    if report is not None:
        measured.to_html(report)
        note(f"report: {report}")
    if json:
        print_json(measured.to_dict())
    else:
        print(measured)


def _of_model(
    model: Path, data: str, said: DataOptions, split: str, ks: list[int], tail: float
) -> Any:
    tagger = load_tagger(model)
    dataset = read(data, said.with_remembered(tagger, data))
    name, rows = split_of(dataset, split)
    alone = dataset.splits.keys() <= {"train"}  # a file: its rows are called nothing else
    measured = tagger.evaluate(
        rows.inputs,
        rows.Y,
        label_names=dataset.label_names,
        unknown=rows.unknown_labels,
        k=ks,
        tail=tail,
        title=f"{model.name} on {dataset.name}" + ("" if alone else f", {name} split"),
    )
    return measured_now(measured, data, dataset.sha256, model=str(model))


def cutoffs(text: str) -> list[int]:
    """Return ``1,3,5`` as numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"-k: expected numbers such as 1,3,5, got {text!r}") from None
