"""``longtail compare``: several models on the same data, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import make_models, parse_models
from longtail.cli.output import check_writable, note, print_json
from longtail.cli.reading import DataOptions, learned_targets, parse_weights, read
from longtail.cli.text_options import refuse_for_features, with_text_options
from longtail.cli.training import leaning, measure, plans, set_aside
from longtail.cli.trial import Trial, run_trial

if TYPE_CHECKING:
    from longtail.data import Dataset

__all__ = ["Entry", "command", "compare_models", "numbers", "table"]

Table = list[tuple[str, list[float | None]]]  # names, and a value of every model
SHOWN = ("P@1", "P@5", "nDCG@5", "PSP@5", "macro-F1 present@5", "coverage present@5")


@dataclass(frozen=True)
class Entry:
    """One model of a comparison."""

    name: str
    trial: Trial

    @property
    def report(self) -> Any:
        """How good it is."""
        return self.trial.report

    def costs(self) -> dict[str, float | None]:
        """Return what it cost, by name."""
        return {
            "training, s": self.trial.fit_seconds,
            "answer, µs": self.trial.microseconds,
            "peak memory, MB": self.trial.peak_mb,
            "model, MB": self.trial.model_mb,
        }


@with_text_options
def command(
    data: opt.Data,
    models: Annotated[
        str,
        typer.Option(
            "--models", "-m", help="Names, separated by commas; auto is what train chooses."
        ),
    ] = "popularity,nearest-neighbors,xr-linear,ensemble",
    device: opt.Device = None,
    encoder: opt.Encoder = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    test_size: Annotated[
        float, typer.Option(help="Part set aside to measure on, if needed.", min=0.01, max=0.9)
    ] = 0.1,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    label_separator: opt.LabelSeparator = None,
    delimiter: opt.Delimiter = None,
    layout: opt.Layout = None,
    field_weights: opt.FieldWeights = None,
    label_texts: opt.LabelTexts = None,
    label_text_field: opt.LabelTextField = None,
    learn_label_texts: opt.LearnLabelTexts = False,
    label_targets: opt.LabelTargets = None,
    calibrate: Annotated[
        bool, typer.Option(help="As in train; without it, about half the time.")
    ] = True,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
    *,
    tfidf: dict[str, Any],
) -> None:
    """Fit several models on the same rows and set them side by side: quality, tail and cost.

    Each is fitted and measured as train does it, before it fits the model again on all rows: with
    the same seed, the numbers are those of train --model.
    """
    weights = parse_weights(field_weights)
    check_writable(report, "--report")
    names = parse_models(models)
    settings = {"random_state": seed, "n_jobs": jobs}
    made = make_models(names, device=device, encoder=encoder, **settings)  # before the data is read
    params = {
        "field_weights": weights,
        "vectorizer": tfidf or None,
        "calibrate": calibrate,
        "learn_label_texts": learned_targets(learn_label_texts, label_targets),
        **settings,
    }
    options = DataOptions(
        text_column,
        label_column,
        label_separator,
        delimiter,
        layout,
        weights,
        label_texts,
        label_text_field,
    )
    dataset = read(data, options)
    refuse_for_features(tfidf, dataset)
    dataset = set_aside(dataset, test_size, seed)
    entries = compare_models(dataset, made, params)
    if report is not None:
        from longtail.cli.compare_page import page

        report.write_text(page(str(dataset.name), entries), encoding="utf-8")
        note(f"report: {report}")
    if json:
        print_json({e.name: {"cost": e.costs(), "report": e.report.to_dict()} for e in entries})
    else:
        print(table(entries))


def compare_models(
    dataset: Dataset,
    models: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
    *,
    keep: Mapping[str, Path] | None = None,
) -> list[Entry]:
    """Fit each model as ``train`` does, on the same rows, and measure it on the test split.

    ``models`` by name; None stands for the one that is chosen for the data. ``keep``: folders to
    save some of them in, with their reports.
    """
    from longtail.tagger import Tagger

    if not len(dataset.test):
        raise ValueError(f"{dataset.name} has no rows to measure on")
    settings = dict(params or {})
    plan, whole = plans(dataset, settings)
    among = None if dataset.whole is None else whole.labels.vocabulary.names
    rows = Tagger(**settings).rows(plan)
    note(f"over {plan.over}")
    entries = []
    for name, model in models.items():

        def measured(tagger: Any, top: Any, name: str = name) -> Any:
            report = measure(tagger, dataset, top, among=among, title=f"{name} on {dataset.name}")
            if keep is not None and name in keep:
                tagger.keep_report(report, leaning(tagger, dataset, top, among=among))
                tagger.save(keep[name], overwrite=True)
            return report

        own = rows
        if getattr(model, "reads_texts", False):
            reading = {**settings, "model": model, "vectorizer": None}
            own = Tagger(**reading).rows(plans(dataset, reading)[0])
        elif model is not None:
            own = rows.with_model(model, f"{name}, as asked")
        trial = run_trial(Tagger(**settings), own, dataset.test.inputs, measured)
        note(f"{name}: trained in {trial.fit_seconds:.1f} s")
        entries.append(Entry(name, trial))
    return entries


def numbers(entries: Sequence[Entry]) -> tuple[Table, Table, Table]:
    """Return names and the values of every model: metrics and the recall of each bin, in per cent,
    and costs.
    """
    reports = [entry.report for entry in entries]
    metrics = [
        (metric, [100 * report[metric] for report in reports])
        for metric in SHOWN
        if all(metric in report.metrics for report in reports)
    ]
    bins = [
        (f"{found[0].name}: {found[0].n_labels:,} labels", [100 * b.recall[5] for b in found])
        for found in zip(*(report.bins for report in reports), strict=True)
    ]
    costs = [entry.costs() for entry in entries]
    return metrics, bins, [(name, [cost[name] for cost in costs]) for name in costs[0]]


def table(entries: list[Entry]) -> str:
    """Return metrics in per cent, then recall from head to tail, then cost."""
    from longtail.report.catalogue import OVER

    width = max(14, *(len(entry.name) + 2 for entry in entries))

    def line(title: str, cells: list[str]) -> str:
        return f"{title:<26}" + "".join(f"{cell:>{width}}" for cell in cells)

    def lines_of(rows: Table) -> list[str]:
        shown = {name: ["" if v is None else f"{v:,.1f}" for v in values] for name, values in rows}
        return [line(name, cells) for name, cells in shown.items()]

    first = entries[0].report
    metrics, bins, costs = numbers(entries)
    lines = [line("in per cent", [entry.name for entry in entries]), *lines_of(metrics)]
    lines += [f"present: {OVER['present']}", f"measured on {first.measured_on}"]
    if first.facts.trained_rows:
        lines.append(
            f"{first.facts.trained_rows:,} of {first.facts.n_rows:,} test rows have the text of a "
            "training row, which lifts every number (each report says what is left without them)"
        )
    lines += ["", "labels found among 5 answers, by training frequency", *lines_of(bins)]
    return "\n".join([*lines, "", "cost", *lines_of(costs)])
