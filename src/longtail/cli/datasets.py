"""``longtail datasets``: data sets by name."""

from __future__ import annotations

from typing import Annotated

import typer

from longtail.cli import options as opt
from longtail.cli.output import print_json

__all__ = ["command"]


def command(
    name: Annotated[
        str | None, typer.Argument(help="Describe this one (it is read, or downloaded).")
    ] = None,
    json: opt.Json = False,
) -> None:
    """List the data sets that are known by name, or describe one (a path will do too)."""
    import longtail as lt

    if name is not None:
        facts = lt.load_dataset(name).describe()
        if json:
            print_json(facts.to_dict())
        else:
            print(facts)
        return
    entries = lt.list_datasets()
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
