"""``longtail tradeoff``: what rare labels gain and what precision pays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import load_tagger
from longtail.cli.output import note, print_json
from longtail.cli.reading import DataOptions, read

__all__ = ["command", "curve_of"]

_CANDIDATES = 100
_TAILS = (0.25, 0.5, 1.0)


def command(
    model: opt.ModelFolder,
    data: opt.Data,
    split: Annotated[str, typer.Option(help="train, dev, test or auto.")] = "auto",
    k: Annotated[int, typer.Option("-k", "--k", help="Labels for each text.", min=1)] = 5,
    metric: Annotated[
        str,
        typer.Option(
            help="What to trade precision for, over all labels: macro_f1, macro_recall, coverage, …"
        ),
    ] = "macro_f1",
    steps: Annotated[int, typer.Option(help="Points on the curve.", min=2, max=101)] = 19,
    keep: Annotated[
        float,
        typer.Option(help="Share of the best precision to keep, for the point.", min=0.0, max=1.0),
    ] = 0.95,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the curve to this file (.png, .svg, .pdf).")
    ] = None,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    label_separator: opt.LabelSeparator = None,
    delimiter: opt.Delimiter = None,
    layout: opt.Layout = None,
    seed: opt.Seed = 0,
    json: opt.Json = False,
) -> None:
    """Trade precision for a metric of rare labels, and show what each point gives.

    Every point is the answer that is best for a mixture of both metrics (longtail.tradeoff);
    predict --tail is drawn for comparison. Printed is the front: points that no other beats in
    both.
    """
    from longtail.tagger.seen import trained_sentence

    tagger = load_tagger(model)
    weights = None if tagger.fields_ is None else dict.fromkeys(tagger.fields_, 1.0)
    source = read(
        data, DataOptions(text_column, label_column, label_separator, delimiter, layout, weights)
    )
    _, part = source.split(split)
    curve = curve_of(tagger, part, source.label_names, metric, k, steps, seed)
    seen = tagger.trained_on(part.texts)
    said = trained_sentence(seen)
    if said is not None:
        note(f"{said}: this is no curve of new texts. Draw it for rows that it has not seen.")
    if plot is not None:
        curve.plot(plot)
        note(f"curve drawn to {plot}")
    chosen = curve.choose(keep)
    if json:
        trained = None if seen is None else seen.n_rows
        choice = {"keep": keep, "chosen": chosen.to_dict(), "trained_rows": trained}
        print_json({**curve.to_dict(), **choice})
        return
    print(curve.table(curve.front))
    note(f"of {len(curve.points)} points; {100 * keep:g}% of precision is kept by {chosen.name}:")
    note(f"  lt.Tagger(rule=lt.{curve.rule(chosen)})")


def curve_of(
    tagger: Any, part: Any, label_names: list[str], metric: str, k: int, steps: int, seed: int
) -> Any:
    """The trade-off on a part of the data; the candidates of a text are found once."""
    import numpy as np

    from longtail.decide.rule import by_probability
    from longtail.report import tradeoff
    from longtail.tagger.tail import lean

    if not tagger.has_probabilities:
        raise ValueError(
            "this model has scores, but no probabilities to decide with: train it with calibration"
        )
    truth = tagger.truth(part.Y, label_names, part.unknown)
    eta = tagger.model_.predict_proba_topk(tagger.transform(part.texts), k=max(k, _CANDIDATES))
    counts = tagger.label_counts_ / max(tagger.n_rows_, 1)
    others = {}
    for tail in _TAILS:
        chosen = lean(eta, tagger._inverse(), tail, k)
        others[f"--tail {tail:g}"] = by_probability(chosen.indices, chosen.scores, truth.Y.shape[1])
    inner = 1 / (1 + 10 ** np.linspace(4, -3, steps - 2))
    return tradeoff(
        eta,
        ("precision", metric),
        k,
        Y_true=truth.Y,
        weights=[0.0, *inner, 1.0],
        prior=counts,
        others=others,
        random_state=seed,
    )
