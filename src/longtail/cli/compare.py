"""``longtail compare``: several models on the same data, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.output import note, print_json
from longtail.cli.reading import DataOptions, Source, parse_weights, read
from longtail.cli.text_options import refuse_for_features, with_text_options
from longtail.cli.train import held_out
from longtail.cli.trial import Trial, run_trial

__all__ = ["Entry", "command", "compare_models", "table"]

SHOWN = ("P@1", "P@5", "nDCG@5", "PSP@5", "macro-F1 present@5", "coverage present@5")


@dataclass(frozen=True)
class Entry:
    """One model of a comparison."""

    name: str
    trial: Trial
    report: Any

    def costs(self) -> dict[str, float | None]:
        """What it cost, by name."""
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
        str, typer.Option("--models", "-m", help="Names, separated by commas.")
    ] = "popularity,nearest-neighbors,xr-linear,ensemble",
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
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
    *,
    tfidf: dict[str, Any],
) -> None:
    """Fit several models on the same rows and set them side by side: quality, tail and cost."""
    weights = parse_weights(field_weights)
    names = list(dict.fromkeys(name.strip() for name in models.split(",")))
    source = read(
        data, DataOptions(text_column, label_column, label_separator, delimiter, layout, weights)
    )
    refuse_for_features(tfidf, source)
    source = held_out(source, test_size, seed)
    entries = compare_models(source, names, weights=weights, tfidf=tfidf, seed=seed, jobs=jobs)
    if report is not None:
        from longtail.cli.compare_page import page

        report.write_text(page(source.name, entries), encoding="utf-8")
        note(f"report: {report}")
    if json:
        print_json({e.name: {"cost": e.costs(), "report": e.report.to_dict()} for e in entries})
    else:
        print(table(entries))


def compare_models(
    source: Source,
    names: list[str],
    *,
    weights: Any = None,
    tfidf: dict[str, Any] | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> list[Entry]:
    """Fits each model on the same features and measures it on the test split."""
    from longtail.propensity import JainPropensity
    from longtail.report import evaluate
    from longtail.tagger.choose import make_model

    models = {name: make_model(name, seed, jobs) for name in names}  # before the work begins
    if source.test is None:
        raise ValueError(f"{source.name} has no rows to measure on")
    X, X_test = features(source, weights, tfidf, jobs)
    propensity = JainPropensity().fit(source.train.Y)
    entries = []
    for name, model in models.items():
        trial = run_trial(model, X, source.train.Y, X_test, k=5)
        note(f"{name}: trained in {trial.fit_seconds:.1f} s")
        measured = evaluate(
            source.test.Y,
            trial.top,
            propensity=propensity,
            train_Y=source.train.Y,
            label_names=source.label_names,
            title=f"{name} on {source.name}",
        )
        entries.append(Entry(name, trial, measured))
    return entries


def features(
    source: Source, weights: Any, tfidf: dict[str, Any] | None, jobs: int | None
) -> tuple[Any, Any]:
    """Features of the training and test rows, by the vectoriser that would be chosen."""
    from longtail.tagger.choose import choose
    from longtail.tagger.fields import as_columns, is_matrix, joined, rows_of, vectorize

    assert source.test is not None
    columns, test = (as_columns(part.texts, None) for part in (source.train, source.test))
    chosen = choose(
        joined(columns),
        len(source.label_names),
        features=is_matrix(columns),
        vectorizer=tfidf,
        n_jobs=jobs,
    )
    note(f"over {chosen.over}")
    X = vectorize(columns, chosen.vectorizer, weights)
    return X, rows_of(test, chosen.vectorizer, weights)


def table(entries: list[Entry]) -> str:
    """Metrics in per cent, then recall from head to tail, then cost."""
    width = max(14, *(len(entry.name) + 2 for entry in entries))

    def line(title: str, cells: list[str]) -> str:
        return f"{title:<26}" + "".join(f"{cell:>{width}}" for cell in cells)

    lines = [line("in per cent", [entry.name for entry in entries])]
    for metric in SHOWN:
        if all(metric in entry.report.metrics for entry in entries):
            lines.append(line(metric, [f"{100 * entry.report[metric]:.1f}" for entry in entries]))
    lines += ["", "labels found among 5 answers, by training frequency"]
    for bins in zip(*(entry.report.bins for entry in entries), strict=True):
        title = f"{bins[0].name}: {bins[0].n_labels:,} labels"
        lines.append(line(title, [f"{100 * bin.recall[5]:.1f}" for bin in bins]))
    lines += ["", "cost"]
    for name in entries[0].costs():
        values = [entry.costs()[name] for entry in entries]
        lines.append(line(name, ["" if v is None else f"{v:,.1f}" for v in values]))
    return "\n".join(lines)
