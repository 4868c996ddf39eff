"""``longtail tune``: a small, budgeted search on a validation split."""

from __future__ import annotations

import json as jsonlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import parse_models
from longtail.cli.output import check_free, check_writable, note, print_json
from longtail.cli.provenance import keep_provenance
from longtail.cli.reading import DataOptions, learned_targets, read
from longtail.cli.search import Search, shown
from longtail.cli.text_options import refuse_for_features, with_text_options
from longtail.cli.training import fit_plan, measure, plans, set_aside

if TYPE_CHECKING:
    from longtail.data import Dataset

__all__ = ["command"]

METRICS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5", "macro-F1 present@5", "coverage present@5")


@with_text_options
def command(
    data: opt.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Train the best setting and save it here."),
    ] = None,
    metric: Annotated[str, typer.Option(help=f"What to maximise: {', '.join(METRICS)}.")] = "P@5",
    budget: Annotated[float, typer.Option(help="Seconds to spend.", min=1.0)] = 300.0,
    trials: Annotated[int, typer.Option(help="Most settings to try.", min=1)] = 20,
    models: Annotated[
        str, typer.Option("--models", "-m", help="Models to try, separated by commas.")
    ] = "xr-linear,one-vs-all,ensemble",
    device: opt.Device = None,
    encoder: opt.Encoder = None,
    journal: Annotated[
        Path | None,
        typer.Option(help="File that keeps finished trials; an interrupted search goes on."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a model that is there.")] = False,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    label_separator: opt.LabelSeparator = None,
    delimiter: opt.Delimiter = None,
    layout: opt.Layout = None,
    label_texts: opt.LabelTexts = None,
    label_text_field: opt.LabelTextField = None,
    learn_label_texts: opt.LearnLabelTexts = False,
    label_targets: opt.LabelTargets = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
    *,
    tfidf: dict[str, Any],
) -> None:
    """Try settings of vectoriser and model on a validation split, within a budget of time.

    What train would train comes first, then the defaults of the other models, then further settings
    in random order. What you give is kept as it is. The test split is never looked at. The model
    that is saved learns from all training rows.
    """
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}: use {', '.join(METRICS)}")
    if output is not None:
        check_free(output, overwrite)
    check_writable(journal, "--journal")
    names = parse_models(models)
    learned = learned_targets(learn_label_texts, label_targets)
    search = Search(names, seed, jobs, device, encoder, tfidf, learned)
    read_from = DataOptions(
        text_column,
        label_column,
        label_separator,
        delimiter,
        layout,
        label_texts=label_texts,
        label_text_field=label_text_field,
    )
    dataset = read(data, read_from)
    refuse_for_features(tfidf, dataset)
    dataset = _with_validation(dataset, seed)
    given = jsonlib.loads(jsonlib.dumps(tfidf))  # as it is read back: lists for tuples
    kind = {"data": data, "metric": metric, "seed": seed, "tfidf": given}  # one journal for all
    if learned:
        kind["learn_label_texts"] = learned
    done = _read_journal(journal, kind)
    plan, whole = plans(dataset, search.params)
    began, found = time.monotonic(), []
    for setting in search.settings(whole, trials):
        key = jsonlib.dumps(setting, sort_keys=True)
        if key in done:
            found.append((done[key], setting))
            continue
        if found and time.monotonic() - began > budget:
            note(f"the budget of {budget:g} s is spent")
            break
        score, seconds = _score(
            dataset, search.planned(plan, setting), whole, search.params, metric
        )
        found.append((score, setting))
        note(f"{metric} {100 * score:6.2f}  {seconds:6.1f} s  {shown(setting)}")
        if journal is not None:
            with open(journal, "a", encoding="utf-8") as file:
                line = {**kind, "setting": setting, "score": score}
                file.write(jsonlib.dumps(line) + "\n")
    found.sort(key=lambda pair: -pair[0])
    best_score, best = found[0]
    if output is not None:
        plan = search.planned(whole, best)
        tagger, _ = fit_plan(plan, {**search.params, **search.given(plan), "calibrate": True})
        keep_provenance(tagger, data, dataset, read_from)
        tagger.save(output, overwrite=overwrite)
        note(f"saved the best setting to {output}")
    if json:
        trials_made = [{"score": score, "setting": setting} for score, setting in found]
        print_json({"metric": metric, "best": best, "score": best_score, "trials": trials_made})
    else:
        print(f"best: {metric} {100 * best_score:.2f}  {shown(best)}")


def _score(
    dataset: Dataset, plan: Any, whole: Any, params: dict[str, Any], metric: str
) -> tuple[float, float]:
    tagger, seconds = fit_plan(plan, params)
    top = tagger.predict_topk(dataset.test.inputs, 5)
    among = None if dataset.whole is None else whole.labels.vocabulary.names
    report = measure(tagger, dataset, top, among=among, n_resamples=0)
    return float(report[metric]), seconds


def _with_validation(dataset: Dataset, seed: int) -> Dataset:
    """Return the data set with the rows to validate on as its test split.

    They are its own validation rows, or some set aside from the training rows.
    """
    from longtail.data import Split

    if dataset.dev is not None:
        return replace(dataset, test=dataset.dev)
    divided = set_aside(replace(dataset, test=Split()), 0.1, seed)
    if divided.whole is None:
        raise ValueError(f"{dataset.name} has too few rows to set some aside for validation")
    return divided


def _read_journal(path: Path | None, kind: dict[str, Any]) -> dict[str, float]:
    """Return scores of finished trials of this search by setting; half a line at the end is left
    out.
    """
    found: dict[str, float] = {}
    if path is None or not os.path.exists(path):
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = jsonlib.loads(line)
            if {name: entry[name] for name in kind} != kind:
                continue
            found[jsonlib.dumps(entry["setting"], sort_keys=True)] = float(entry["score"])
        except (ValueError, KeyError, TypeError):
            continue
    return found
