"""``longtail vectorize``: texts that do not fit into memory, as rows on disk to train from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.output import note, print_json
from longtail.cli.reading import DataOptions
from longtail.cli.text_options import with_text_options

__all__ = ["command"]

_LOOKED_AT = 100_000  # rows of the first file that the choice of terms is made from


@with_text_options
def command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES",
            help="Tables (.csv, .tsv, .jsonl, .parquet, also .gz) or fastText lines; each becomes "
            "a shard.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the rows.", show_default=False)
    ],
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    label_separator: opt.LabelSeparator = None,
    delimiter: opt.Delimiter = None,
    overwrite: Annotated[bool, typer.Option(help="Replace rows that are there.")] = False,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
    *,
    tfidf: dict[str, Any],
) -> None:
    """Turn files of texts with labels into features and labels on disk, whatever their size.

    A block of texts is in memory at a time; the rows are those that train would make of the same
    texts. Train from the folder with --memory-limit: the model answers texts as usual. After Ctrl-C
    the same command goes on where it was.

    Example:  longtail vectorize part-*.jsonl -o rows && longtail train rows -o model
    """
    import longtail as lt
    from longtail.features.vectorized import first_texts
    from longtail.tagger.choose_terms import choose_terms

    given = DataOptions(text_column, label_column, label_separator, delimiter).given()
    terms = choose_terms(first_texts(files, _LOOKED_AT, **given), tfidf or None, jobs)
    note(f"{len(files):,} files, over {terms.over}")
    began = time.perf_counter()
    lt.features.vectorize_files(files, output, terms.vectorizer, overwrite=overwrite, **given)
    data = lt.features.load_vectorized(output).train
    facts = {
        "rows": int(data.X.shape[0]),
        "features": int(data.X.shape[1]),
        "labels": int(data.Y.shape[1]),
        "seconds": round(time.perf_counter() - began, 3),
    }
    if json:
        print_json({"folder": str(output), **facts})
        return
    print(
        f"{facts['rows']:,} rows of {facts['features']:,} features and {facts['labels']:,} labels "
        f"are in {output} ({facts['seconds']:.1f} s)\nNext:  longtail train {output} -o model"
    )
