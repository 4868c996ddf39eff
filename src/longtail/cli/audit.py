"""``longtail audit``: which labels are probably missing from the data."""

from __future__ import annotations

import csv
import json as jsonlib
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import named_model
from longtail.cli.output import check_writable, note, print_json
from longtail.cli.reading import DataOptions, parse_weights, read

if TYPE_CHECKING:
    from longtail.data import Dataset

__all__ = ["command"]

_SHOWN = 10
_COLUMNS = ("row", "label", "label_text", "missing", "observed", "propensity", "text")


def command(
    data: opt.Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the suspects, most probable first (.csv, .tsv or .jsonl).",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write the audit as an HTML page.")
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            help="Column of ids, to name rows by. [default: numbers from 0]", show_default=False
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="As in train; no model that reads texts.")] = "auto",
    folds: Annotated[int, typer.Option(help="Copies of the model to fit.", min=2)] = 3,
    suspects: Annotated[int, typer.Option("-n", help="Most suspects to list.", min=1)] = 1000,
    full: Annotated[
        bool, typer.Option("--full", help="Print also what contradicts the propensities.")
    ] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    label_separator: opt.LabelSeparator = None,
    delimiter: opt.Delimiter = None,
    layout: opt.Layout = None,
    field_weights: opt.FieldWeights = None,
    label_texts: opt.LabelTexts = None,
    label_text_field: opt.LabelTextField = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
) -> None:
    """List labels that are probably missing: absent, though the text speaks for them.

    Copies of a model are asked about rows that they have not seen; what they are sure of and nobody
    recorded is suspicious. How sure depends on the assumed propensities, which are examined too.

    Example:  longtail audit tickets.csv --label-separator ';' -o missing.csv
    """
    from longtail.audit import find_missing

    _check_output(output, overwrite)
    check_writable(report, "--report")
    weights = parse_weights(field_weights)
    said = DataOptions(
        text_column,
        label_column,
        label_separator,
        delimiter,
        layout,
        weights,
        label_texts,
        label_text_field,
    )
    dataset = read(data, said)
    ids = _ids(data, said, id_column, len(dataset.train))
    plan, X = _rows(dataset, named_model(model, seed, jobs), weights, seed, jobs)
    note(f"{dataset.name}: {len(dataset.train):,} rows, {folds} copies of {plan.why}")
    found = find_missing(
        plan.model,
        X,
        plan.labels.Y,
        folds=folds,
        n_listed=suspects,
        label_names=plan.labels.vocabulary.names,
        title=f"Labels missing from {dataset.name}",
        random_state=seed,
    )
    listed = _suspects(found, plan, ids)
    if output is not None:
        _write(output, listed)
        note(f"{len(listed):,} suspects: {output}")
    if report is not None:
        _with_texts(found, plan.labels.texts).to_html(report)
        note(f"report: {report}")
    if json:
        print_json(found.to_dict())
        return
    print(_in_short(found, listed, output))
    if full:
        print(f"\n{found}")


def _rows(
    dataset: Dataset, model: Any, weights: Any, seed: int, jobs: int | None
) -> tuple[Any, Any]:
    """Return the plan of a tagger for all training rows, and their features."""
    from longtail.tagger import Tagger

    if not len(dataset.train):
        raise ValueError(f"{dataset.name} has no training rows")
    tagger = Tagger(model=model, field_weights=weights, random_state=seed, n_jobs=jobs)
    plan = tagger.plan(
        dataset.train.inputs,
        dataset.train.Y,
        label_names=dataset.label_names,
        label_texts=dataset.label_texts,
    )
    if getattr(plan.model, "reads_texts", False):
        raise ValueError("audit takes a model over features, such as --model one-vs-all")
    return plan, tagger.rows(plan).X


def _ids(data: str, said: DataOptions, column: str | None, n: int) -> list[Any]:
    if column is None:
        return list(range(n))
    from longtail.data.table_rows import is_table_name, table_rows

    if data == "-" or not is_table_name(data):
        raise ValueError(f"--id-column: {data} is no table, and has no columns")
    return [cells[0] for _, cells, _ in table_rows(data, [column], said.given().get("delimiter"))]


def _suspects(found: Any, plan: Any, ids: list[Any]) -> list[dict[str, Any]]:
    texts = plan.labels.texts
    return [
        {
            "row": ids[s.row],
            "label": s.name,
            "label_text": "" if texts is None else texts[s.label],
            "missing": round(s.probability, 4),
            "observed": round(s.proba, 4),
            "propensity": round(s.propensity, 4),
            "text": plan.texts[s.row],
        }
        for s in found.missing
    ]


def _with_texts(found: Any, texts: list[str] | None) -> Any:
    """Return the audit with what labels are called in words, for the page."""
    if texts is None:
        return found
    listed = (replace(s, name=f"{texts[s.label]} ({s.name})".strip()) for s in found.missing)
    return replace(found, missing=tuple(listed))


def _check_output(output: Path | None, overwrite: bool) -> None:
    if output is None:
        return
    check_writable(output, "--output")
    if output.suffix not in (".csv", ".tsv", ".jsonl"):
        raise ValueError(f"--output {output}: end the name in .csv, .tsv or .jsonl")
    if output.exists() and not overwrite:
        raise FileExistsError(f"{output} exists: choose another file, or pass --overwrite")


def _write(output: Path, listed: list[dict[str, Any]]) -> None:
    with open(output, "w", encoding="utf-8", newline="") as file:
        if output.suffix == ".jsonl":
            for one in listed:
                file.write(jsonlib.dumps(one, ensure_ascii=False) + "\n")
            return
        delimiter = "\t" if output.suffix == ".tsv" else ","
        lines = csv.DictWriter(file, _COLUMNS, delimiter=delimiter, lineterminator="\n")
        lines.writeheader()
        lines.writerows(listed)


def _in_short(found: Any, listed: list[dict[str, Any]], output: Path | None) -> str:
    share = 100 * found.expected_missing / found.n_positives
    lines = [
        f"About {found.expected_missing:,.0f} labels are missing, {share:.1f} % of the "
        f"{found.n_positives:,.0f} that are recorded, if labels go missing as {found.propensity} "
        "assumes.",
        "Most suspicious, with the probability that the label belongs to the text:"
        if listed
        else "None is suspicious.",
    ]
    for one in listed[:_SHOWN]:
        name = f"{one['label']}  {one['label_text']}".strip()
        text = textwrap.shorten(f"row {one['row']}: {one['text']}", 67, placeholder=" …")
        lines += [f"  {100 * one['missing']:5.1f} %  {name}", f"           {text}"]
    refuted = [fit.model for fit in found.fits if fit.is_refuted]
    if refuted:
        lines.append(
            f"{', '.join(refuted)} contradicts the data (see --full): read the order, not the "
            "probabilities."
        )
    lines.append(
        f"Next: look at the first fifty (-o {output or 'missing.csv'}); where most are right, "
        "complete them, or train with --missing-labels jain."
    )
    return "\n".join(textwrap.fill(line, 79) if line[0] != " " else line for line in lines)
