"""``longtail tune``: a small, budgeted search on a validation split."""

from __future__ import annotations

import json as jsonlib
import os
import time
from collections.abc import Collection, Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.output import check_free, note, print_json
from longtail.cli.reading import DataOptions, Part, Source, read
from longtail.cli.text_options import refuse_for_features, with_text_options
from longtail.cli.train import fit_tagger, held_out

__all__ = ["command", "settings"]

METRICS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5", "macro-F1 present@5", "coverage present@5")
_GRID: dict[str, tuple[Any, ...]] = {
    "model": ("xr-linear", "one-vs-all", "ensemble"),
    "C": (1.0, 0.5, 2.0, 4.0),
    "ngrams": (1, 2),
    "min_df": (2, 1, 5),
}


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
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
    *,
    tfidf: dict[str, Any],
) -> None:
    """Try settings of vectoriser and model on a validation split, within a budget of time.

    The default comes first, then settings in random order. What you give is kept as it is. The
    test split is never looked at.
    """
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}: use {', '.join(METRICS)}")
    if output is not None:
        check_free(output, overwrite)
    source = read(data, DataOptions(text_column, label_column, label_separator, delimiter, layout))
    refuse_for_features(tfidf, source)
    source = _with_validation(source, seed)
    names = [name.strip() for name in models.split(",")]
    given = jsonlib.loads(jsonlib.dumps(tfidf))  # as it is read back: lists for tuples
    search = {"data": data, "metric": metric, "seed": seed, "tfidf": given}  # one journal for all
    done = _read_journal(journal, search)
    began, found = time.monotonic(), []
    for setting in settings(names, trials, seed, open_choices(source.train.texts, tfidf)):
        key = jsonlib.dumps(setting, sort_keys=True)
        if key in done:
            found.append((done[key], setting))
            continue
        if found and time.monotonic() - began > budget:
            note(f"the budget of {budget:g} s is spent")
            break
        score, seconds = _score(source, setting, metric, seed, jobs, tfidf)
        found.append((score, setting))
        note(f"{metric} {100 * score:6.2f}  {seconds:6.1f} s  {_shown(setting)}")
        if journal is not None:
            with open(journal, "a", encoding="utf-8") as file:
                line = {**search, "setting": setting, "score": score}
                file.write(jsonlib.dumps(line) + "\n")
    found.sort(key=lambda pair: -pair[0])
    best_score, best = found[0]
    if output is not None:
        tagger, _ = fit_tagger(source, _params(best, seed, jobs, tfidf))
        tagger.save(output, overwrite=overwrite)
        note(f"saved the best setting to {output}")
    if json:
        trials_made = [{"score": score, "setting": setting} for score, setting in found]
        print_json({"metric": metric, "best": best, "score": best_score, "trials": trials_made})
    else:
        print(f"best: {metric} {100 * best_score:.2f}  {_shown(best)}")


def open_choices(texts: Any, tfidf: dict[str, Any]) -> set[str]:
    """Which choices about the texts are left to try: those that are not given, for words alone."""
    if not isinstance(texts, list):
        return set()
    from longtail.tagger.choose_terms import choose_terms

    words = choose_terms(texts, tfidf).vectorizer.analyzer == "word"
    fixed = {"ngrams": "ngram_range" in tfidf or not words, "min_df": "min_df" in tfidf}
    return {name for name, given in fixed.items() if not given}


def settings(
    models: list[str], most: int, seed: int, text_choices: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """Settings to try: the default of each model, then the others in random order."""
    import numpy as np

    from longtail.tagger.choose import make_model

    for name in models:
        make_model(name)  # refuses an unknown one before any work
    kept = ("model", "C", *text_choices)
    grid = {name: values for name, values in _GRID.items() if name in kept}
    grid["model"] = tuple(models)
    every = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if not any(name in ("xr-linear", "one-vs-all", "ensemble") for name in models):
        every = [s for s in every if s["C"] == 1.0]
    plain = {name: values[0] for name, values in grid.items() if name != "model"}
    first = [s for s in every if all(s[name] == value for name, value in plain.items())]
    rest = [s for s in every if s not in first]
    order = np.random.default_rng(seed).permutation(len(rest))
    yield from (first + [rest[i] for i in order])[:most]


def _params(
    setting: dict[str, Any], seed: int, jobs: int | None, tfidf: dict[str, Any]
) -> dict[str, Any]:
    from longtail.tagger.choose import make_model

    model = make_model(setting["model"], seed, jobs)
    members = getattr(model, "models", [model])
    for member in members:
        if "C" in member.get_params(deep=False):
            member.set_params(C=setting["C"])
    terms = dict(tfidf)
    if "ngrams" in setting:
        terms["ngram_range"] = (1, setting["ngrams"])
    if "min_df" in setting:
        terms["min_df"] = setting["min_df"]
    return {"model": model, "vectorizer": terms or None, "n_jobs": jobs}


def _score(
    source: Source,
    setting: dict[str, Any],
    metric: str,
    seed: int,
    jobs: int | None,
    tfidf: dict[str, Any],
) -> tuple[float, float]:
    assert source.dev is not None
    tagger, seconds = fit_tagger(
        source, {**_params(setting, seed, jobs, tfidf), "calibrate": False}
    )
    report = tagger.evaluate(
        source.dev.texts,
        source.dev.Y,
        label_names=source.label_names,
        unknown=source.dev.unknown,
        n_resamples=0,
    )
    return float(report[metric]), seconds


def _with_validation(source: Source, seed: int) -> Source:
    """The same source with a validation split, taken from the training rows if it has none."""
    from dataclasses import replace

    if source.dev is not None:
        return source
    parts = held_out(replace(source, test=None), 0.1, seed)
    dev: Part | None = parts.test
    if dev is None:
        raise ValueError(f"{source.name} has too few rows to set some aside for validation")
    return replace(source, train=parts.train, dev=dev)


def _read_journal(path: Path | None, search: dict[str, Any]) -> dict[str, float]:
    """Scores of finished trials of this search by setting; half a line at the end is left out."""
    found: dict[str, float] = {}
    if path is None or not os.path.exists(path):
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = jsonlib.loads(line)
            if {name: entry[name] for name in search} != search:
                continue
            found[jsonlib.dumps(entry["setting"], sort_keys=True)] = float(entry["score"])
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _shown(setting: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in setting.items())
