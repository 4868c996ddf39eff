"""``longtail train``: from a file to a trained, evaluated model."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.output import check_free, note, print_json
from longtail.cli.reading import DataOptions, Part, Source, parse_weights, read
from longtail.cli.resume import resumable, unfinished
from longtail.cli.text_options import refuse_for_features, with_text_options

__all__ = ["command", "fit_tagger", "held_out", "measure"]


@with_text_options
def command(
    data: opt.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model.", show_default=False)
    ],
    model: Annotated[
        str,
        typer.Option(
            help="auto, xr-linear, one-vs-all, ensemble, nearest-neighbors or popularity."
        ),
    ] = "auto",
    test_size: Annotated[
        float,
        typer.Option(
            help="Part of the rows set aside to measure the model, where the data has no test "
            "split; 0 measures nothing.",
            min=0.0,
            max=0.9,
        ),
    ] = 0.1,
    report: Annotated[
        Path | None, typer.Option(help="Also write the evaluation as an HTML page.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a model that is there.")] = False,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    label_separator: opt.LabelSeparator = None,
    delimiter: opt.Delimiter = None,
    layout: opt.Layout = None,
    field_weights: opt.FieldWeights = None,
    learn_label_texts: Annotated[
        bool, typer.Option(help="Learn from the texts of labels too: finds more rare labels.")
    ] = False,
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
    tenth of the rows is set aside and measured on; rows that are the last of their label stay.
    After Ctrl-C the same command goes on where it was.

    Example:  longtail train tickets.csv -o model --label-separator ';'
    """
    weights = parse_weights(field_weights)
    began = time.perf_counter()
    check_free(output, overwrite)
    if model != "auto":
        from longtail.tagger import make_model

        make_model(model)  # refuses an unknown one before the data is read
    if memory_limit is not None:
        from longtail.linear.memory import as_bytes

        as_bytes(memory_limit)  # likewise
    options = DataOptions(text_column, label_column, label_separator, delimiter, layout, weights)
    params = {
        "model": model,
        "vectorizer": tfidf or None,
        "field_weights": weights,
        "memory_limit": memory_limit,
        "random_state": seed,
        "n_jobs": jobs,
        "calibrate": calibrate,
        "learn_label_texts": learn_label_texts,
    }
    if missing_labels is not None:
        from longtail.cli.correction import corrected_model

        settings = {"random_state": seed, "n_jobs": jobs, "memory_limit": memory_limit}
        params["model"] = corrected_model(model, missing_labels, correction, **settings)
    source = held_out(read(data, options), test_size, seed)
    refuse_for_features(tfidf, source)
    note(
        f"{source.name}: {len(source.train):,} rows, {len(source.label_names):,} labels"
        + (f"; {len(source.test):,} rows to measure on" if source.test is not None else "")
    )
    with unfinished(output) as folder, told():
        tagger, seconds = resumable(lambda parts: fit_tagger(source, params, parts), folder)
        aside = 0 if source.test is None else len(source.test)
        note(f"trained in {seconds:.1f} s" + (f"; measuring on {aside:,} rows" if aside else ""))
        measured = None
        if source.test is not None:
            measured = measure(tagger, source.test, source)
            if report is not None:
                measured.to_html(report)
        tagger.save(output, overwrite=overwrite)
    elapsed = time.perf_counter() - began
    if json:
        print_json(
            {
                "model": str(output),
                "choice": tagger.choice_,
                "rows": len(source.train),
                "labels": len(source.label_names),
                "train_seconds": round(seconds, 3),
                "seconds": round(elapsed, 3),
                "report": None if measured is None else measured.to_dict(),
            }
        )
        return
    if measured is not None:
        print(measured)
    note(f"saved to {output} in {elapsed:.1f} s; next: longtail predict {output} -")


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        own = record.name == "longtail.tagger.tagger"  # it speaks of its choice of a model
        note(f"model: {text}" if own else text)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """What the tagger says about its choice, as notes, when it says it."""
    handler = _Notes(logging.INFO)
    log = logging.getLogger("longtail.tagger")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def measure(tagger: Any, part: Part, source: Source, title: str | None = None) -> Any:
    """The report on the rows set aside, kept with the tagger."""
    truth = tagger.truth(part.Y, source.label_names, part.unknown)
    top = tagger.predict_topk(part.texts, 5)
    measured = tagger.measure(truth, top, k=(1, 3, 5), title=title or source.name)
    tagger.keep_report(measured, tagger.lean_curve(part.texts, truth, plain=top))
    return measured


def held_out(source: Source, test_size: float, seed: int) -> Source:
    """The same source with a test split taken from the training rows, if it has none."""
    from dataclasses import replace

    from longtail.data import train_validation_indices

    if source.test is not None or not test_size or len(source.train) < 10:
        return source
    train, test = train_validation_indices(
        source.train.Y, validation_size=test_size, random_state=seed
    )
    return replace(source, train=_take(source.train, train), test=_take(source.train, test))


def _take(part: Part, rows: Any) -> Part:
    texts = part.texts
    if isinstance(texts, dict):
        texts = {field: [column[i] for i in rows] for field, column in texts.items()}
    elif isinstance(texts, list):
        texts = [texts[i] for i in rows]
    else:
        texts = texts[rows]
    return Part(texts, part.Y[rows], None if part.unknown is None else part.unknown[rows])


def fit_tagger(
    source: Source, params: dict[str, Any], checkpoint: Path | None = None
) -> tuple[Any, float]:
    """A tagger fitted on the training split, and the seconds that took."""
    from longtail.tagger import Tagger

    if not len(source.train):
        raise ValueError(f"{source.name} has no training rows")
    began = time.perf_counter()
    tagger = Tagger(**params).fit(
        source.train.texts,
        source.train.Y,
        label_names=source.label_names,
        label_texts=source.label_texts,
        checkpoint=checkpoint,
    )
    return tagger, time.perf_counter() - began
