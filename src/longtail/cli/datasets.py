"""``longtail datasets``: data sets by name."""

from __future__ import annotations

from typing import Annotated

import typer

from longtail.cli import options as opt
from longtail.cli.output import print_json
from longtail.cli.reading import DataOptions

__all__ = ["command"]


def command(
    name: Annotated[
        str | None,
        typer.Argument(help="Describe this one, or a file or folder (it is read, or downloaded)."),
    ] = None,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    label_separator: opt.LabelSeparator = None,
    delimiter: opt.Delimiter = None,
    layout: opt.Layout = None,
    json: opt.Json = False,
) -> None:
    """List the data sets that are known by name, or describe one (a path will do too)."""
    import longtail as lt

    options = DataOptions(text_column, label_column, label_separator, delimiter, layout).given()
    if name is None and options:
        raise ValueError(f"--{next(iter(options)).replace('_', '-')} needs the name of a data set")
    if name is not None:
        facts = lt.load_dataset(name, **options).describe()
        if json:
            print_json(facts.to_dict())
        else:
            print(facts)
        return
    entries = lt.data.list_datasets()
    if json:
        print_json(
            [
                {"name": e.name, "train": e.n_train, "test": e.n_test, "labels": e.n_labels}
                for e in entries
            ]
        )
        return
    width = max(len(entry.name) for entry in entries)
    print(f"{'name':<{width}}  {'train':>11}  {'test':>10}  {'labels':>10}")
    for entry in entries:
        cells = [
            "" if n is None else f"{n:,}" for n in (entry.n_train, entry.n_test, entry.n_labels)
        ]
        print(f"{entry.name:<{width}}  {cells[0]:>11}  {cells[1]:>10}  {cells[2]:>10}")
