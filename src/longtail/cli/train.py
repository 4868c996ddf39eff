"""``longtail train``: from a file to a trained, evaluated model."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import named_model
from longtail.cli.output import check_free, check_writable, note, print_json
from longtail.cli.provenance import keep_provenance
from longtail.cli.reading import DataOptions, learned_targets, parse_weights, read
from longtail.cli.resume import MEASURING, resumable, unfinished
from longtail.cli.story import example_texts, gaps, in_short
from longtail.cli.text_options import refuse_for_features, with_text_options
from longtail.cli.training import (
    dev_rows,
    fit_plan,
    leaning,
    measure,
    measured_on,
    plans,
    set_aside,
    told,
)

if TYPE_CHECKING:
    from longtail.data import Dataset

__all__ = ["command", "train_and_measure"]


@with_text_options
def command(
    data: opt.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model.", show_default=False)
    ],
    model: Annotated[
        str,
        typer.Option(
            help="auto, xr-linear, one-vs-all, ensemble, network, text-network, "
            "xr-transformer, dual-encoder, unidec, mach, declare, nearest-neighbors or popularity."
        ),
    ] = "auto",
    quality: Annotated[
        str,
        typer.Option(
            help="What auto chooses: fast, or best: every kind of model, fused, at several times "
            "the training; with --encoder also those that read texts."
        ),
    ] = "fast",
    device: opt.Device = None,
    encoder: opt.Encoder = None,
    test_size: Annotated[
        float,
        typer.Option(
            help="Part of the rows set aside at random to measure the model, where the data has no "
            "test split; 0 measures nothing.",
            min=0.0,
            max=0.9,
        ),
    ] = 0.1,
    refit: Annotated[
        bool,
        typer.Option(
            help="After measuring, fit the model that is saved on all rows, those set aside "
            "included; takes up to twice the time."
        ),
    ] = True,
    report: Annotated[
        Path | None, typer.Option(help="Also write the evaluation as an HTML page.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print the whole evaluation too, below the short one.")
    ] = False,
    examples: Annotated[
        bool,
        typer.Option(
            help="Keep three of the texts in the model, for people to try on the page of serve."
        ),
    ] = True,
    overwrite: Annotated[bool, typer.Option(help="Replace a model that is there.")] = False,
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
        bool, typer.Option(help="Turn scores into probabilities; about doubles the time.")
    ] = True,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            help="Memory that training plans for, such as 2GB; refused at once if it cannot do.",
            show_default=False,
        ),
    ] = None,
    missing_labels: Annotated[
        str | None,
        typer.Option(
            help="Correct for labels that were never recorded, by the propensities of a formula: "
            "jain. Needs --model.",
            show_default=False,
        ),
    ] = None,
    correction: Annotated[
        str,
        typer.Option(help="With it: surrogate, surrogate+balance or balance+surrogate."),
    ] = "surrogate",
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
    *,
    tfidf: dict[str, Any],
) -> None:
    """Train a model on texts with labels, measure it, and save both.

    The model is chosen from the data unless you name one. Where the data has no test split, a
    tenth of the rows is set aside at random and measured on, by a model that has not seen it; the
    model that is saved is then fitted on all rows. After Ctrl-C the same command goes on where it
    was.

    Example:  longtail train tickets.csv -o model --label-separator ';'
    """
    weights = parse_weights(field_weights)
    began = time.perf_counter()
    check_free(output, overwrite)
    check_writable(report, "--report")
    best = quality != "fast"
    if best and (model != "auto" or missing_labels is not None):
        raise ValueError("--quality chooses the models itself: leave out --model")
    own = {} if best else {"device": device, "encoder": encoder}
    named = named_model(model, seed, jobs, memory_limit=memory_limit, **own)
    if memory_limit is not None:
        from longtail.linear.train.memory import as_bytes

        as_bytes(memory_limit)  # refuses what is none before the data is read
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
    params = {
        "model": named,
        "vectorizer": tfidf or None,
        "field_weights": weights,
        "memory_limit": memory_limit,
        "random_state": seed,
        "n_jobs": jobs,
        "calibrate": calibrate,
        "learn_label_texts": learned_targets(learn_label_texts, label_targets),
    }
    if best:
        params |= {"quality": quality, "device": device, "encoder": encoder}
    if missing_labels is not None:
        from longtail.cli.correction import corrected_model

        settings = {"random_state": seed, "n_jobs": jobs, "memory_limit": memory_limit}
        params["model"] = corrected_model(model, missing_labels, correction, **settings)
    dataset = set_aside(read(data, options), test_size, seed)
    refuse_for_features(tfidf, dataset)
    if dataset.vectorizer is not None:
        params["vectorizer"] = dataset.vectorizer
    refit = refit and dataset.whole is not None
    learned = dataset.whole if refit and dataset.whole is not None else dataset.train
    note(_beginning(dataset, refit))
    for line in gaps(dataset):
        note(line)
    with unfinished(output) as folder, told():
        tagger, measured, curve, seconds = resumable(
            lambda parts: train_and_measure(dataset, params, refit, parts), folder
        )
        facts = {"rows": len(learned), "seconds": round(seconds, 3)}
        keep_provenance(tagger, data, dataset, options, **facts)
        if examples:
            tagger.examples_ = example_texts(dataset)
        if measured is not None:
            tagger.keep_report(measured, curve)
            measured = replace(measured, provenance=tagger.provenance_)
            if report is not None:
                measured.to_html(report)
        tagger.save(output, overwrite=overwrite)
    elapsed = time.perf_counter() - began
    if json:
        print_json(
            {
                "model": str(output),
                "choice": tagger.choice_,
                "rows": len(learned),
                "labels": len(tagger.label_names),
                "train_seconds": round(seconds, 3),
                "seconds": round(elapsed, 3),
                "report": None if measured is None else measured.to_dict(),
            }
        )
        return
    print(in_short(tagger, output, measured, elapsed))
    if full and measured is not None:
        print(f"\n{measured}")


def train_and_measure(
    dataset: Dataset, params: dict[str, Any], refit: bool, parts: Path | None = None
) -> tuple[Any, Any, Any, float]:
    """Return the tagger to save, its report, what a lean towards rare labels does, and the seconds
    of training.

    With ``refit``, the measured tagger has learned from the training rows alone, and the one to
    save from those set aside too. Its probabilities come from the curve of the measured one, which
    the report is about.
    """
    from longtail.tagger.held_out import Curve

    plan, whole = plans(dataset, params)
    folder = parts if parts is None or not refit else parts / MEASURING
    tagger, seconds = fit_plan(plan, params, folder, validation=dev_rows(dataset, plan, params))
    note(f"trained in {seconds:.1f} s")
    if not len(dataset.test):
        return tagger, None, None, seconds
    then = ""
    if dataset.whole is not None:
        then = (
            f"; the saved model then learned from all {len(dataset.whole):,} rows"
            if refit
            else "; the saved model is the one measured"
        )
    among = None if dataset.whole is None else whole.labels.vocabulary.names
    top = tagger.predict_topk(dataset.test.inputs, 5)
    report = measure(tagger, dataset, top, among=among, then=then)
    curve = leaning(tagger, dataset, top, among=among)
    if refit:
        note(f"measured on {report.measured_on.partition(';')[0]}; fitting again, on all rows")
        probabilities = Curve.of(tagger.model_)
        del tagger  # two models would take twice the memory
        tagger, more = fit_plan(whole, params, parts, probabilities)
        seconds += more
        note(f"trained in {more:.1f} s")
    return tagger, report, curve, seconds


def _beginning(dataset: Dataset, refit: bool) -> str:
    """Return what is about to happen, in a line."""
    n = len(dataset.whole or dataset.train)
    said = f"{dataset.name}: {n:,} rows, {dataset.n_labels:,} labels"
    if not len(dataset.test):
        return said
    said += f"; to measure on: {measured_on(dataset)}"
    if refit:
        said += ", then the model is fitted on all rows (up to twice the time; --no-refit skips it)"
    return said
