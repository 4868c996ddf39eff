"""``longtail tradeoff``: what rare labels gain and what precision pays."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import load_tagger
from longtail.cli.output import print_json
from longtail.cli.reading import DataOptions, read

__all__ = ["command", "sweep"]


def command(
    model: opt.ModelFolder,
    data: opt.Data,
    split: Annotated[str, typer.Option(help="train, dev, test or auto.")] = "auto",
    k: Annotated[int, typer.Option("-k", "--k", help="Labels for each text.", min=1)] = 5,
    steps: Annotated[int, typer.Option(help="Points on the curve.", min=2, max=101)] = 11,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    label_separator: opt.LabelSeparator = None,
    delimiter: opt.Delimiter = None,
    layout: opt.Layout = None,
    json: opt.Json = False,
) -> None:
    """Sweep the lean towards rare labels (predict --tail) and show what each point gives.

    Choose the point you like, and pass it to predict or serve as --tail.
    """
    tagger = load_tagger(model)
    weights = None if tagger.fields_ is None else dict.fromkeys(tagger.fields_, 1.0)
    source = read(
        data, DataOptions(text_column, label_column, label_separator, delimiter, layout, weights)
    )
    _, part = source.split(split)
    points = sweep(tagger, part, source.label_names, k, steps)
    if json:
        print_json(points)
        return
    names = list(points[0])
    print("  ".join(f"{name:>18}" for name in names))
    for point in points:
        cells = [f"{point['tail']:>18.2f}"] + [f"{100 * point[n]:>18.2f}" for n in names[1:]]
        print("  ".join(cells))


def sweep(
    tagger: Any, part: Any, label_names: list[str], k: int, steps: int
) -> list[dict[str, float]]:
    """Metrics at every point; the candidates of a text are found once."""
    import numpy as np

    from longtail import metrics
    from longtail.propensity import JainPropensity

    truth = tagger.truth(part.Y, label_names, part.unknown)
    X = tagger.transform(part.texts)
    propensity = JainPropensity().fit_counts(tagger.label_counts_, tagger.n_rows_)
    out = []
    for tail in np.linspace(0.0, 1.0, steps).tolist():
        top = tagger.rank(X, k, tail=tail)
        matches = metrics.match(truth.Y, top, k)
        out.append(
            {
                "tail": round(tail, 4),
                f"P@{k}": metrics.precision_at_k(None, matches, k=k),
                f"PSP@{k}": metrics.ps_precision_at_k(None, matches, propensity, k=k),
                f"macro-F1@{k}": metrics.macro_f1_at_k(None, matches, k=k, labels="present"),
                f"coverage@{k}": metrics.coverage_at_k(None, matches, k=k, labels="present"),
            }
        )
    return out
