"""``longtail tradeoff``: what rare labels gain and what precision pays."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.models import load_tagger
from longtail.cli.output import check_writable, note, print_json
from longtail.cli.reading import DataOptions, read, split_of
from longtail.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from longtail.data import Split

__all__ = ["command", "curve_of"]

_CANDIDATES = 100
PLAIN = "top k"  # what longtail.tradeoff calls the plain answers
_TAILS = (0.1, 0.25, 0.5, 0.75, 1.0)


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

    Printed are the plain answers (top k), what --tail of predict and serve makes of them, and the
    front: answers that are best for a mixture of both metrics (longtail.tradeoff), and that no
    other point beats in both. Recommended is a --tail, which predict and serve can apply.
    """
    from longtail.tagger.seen import trained_sentence

    check_writable(plot, "--plot")
    if plot is not None and find_spec("matplotlib") is None:
        raise MissingDependencyError("matplotlib", "plot", "--plot")
    tagger = load_tagger(model)
    said = DataOptions(text_column, label_column, label_separator, delimiter, layout)
    dataset = read(data, said.with_remembered(tagger, data))
    _, rows = split_of(dataset, split)
    curve = curve_of(tagger, rows, dataset.label_names, metric, k, steps, seed)
    seen = tagger.trained_on(rows.inputs)
    learned = trained_sentence(seen)
    if learned is not None:
        note(f"{learned}: this is no curve of new texts. Draw it for rows that it has not seen.")
    if plot is not None:
        curve.plot(plot)
        note(f"curve drawn to {plot}")
    plain = next(point for point in curve.points if point.name == PLAIN)
    leaning = [point for point in curve.points if point.name.startswith("--tail")]
    best = _recommended(plain, leaning, keep)
    if json:
        trained = None if seen is None else seen.n_rows
        choice = {
            "keep": keep,
            "chosen": curve.choose(keep).to_dict(),
            "recommended": best.to_dict(),
            "trained_rows": trained,
        }
        print_json({**curve.to_dict(), **choice})
        return
    shown = [plain, *leaning]
    print(curve.table([*shown, *(point for point in curve.front if point not in shown)]))
    changes = [100 * (new - old) for new, old in zip(best.values, plain.values, strict=True)]
    if best is plain:
        note(f"no --tail keeps {100 * keep:g} % of precision and gains {metric}: stay with top k")
    else:
        note(
            f"{best.name} keeps {100 * keep:g} % of precision: {changes[0]:+.1f} points of "
            f"precision, {changes[1]:+.1f} of {metric}. Apply it with predict or serve:"
        )
        note(f"  longtail serve {model} {best.name}")


def _recommended(plain: Any, leaning: list[Any], keep: float) -> Any:
    """Return the lean that gains the most among those that keep this share of plain precision, or
    none.
    """
    least = keep * plain.values[0]
    good = [point for point in leaning if point.values[0] >= least]
    return max([plain, *good], key=lambda point: point.values[1])


def curve_of(
    tagger: Any,
    rows: Split,
    label_names: list[str] | None,
    metric: str,
    k: int,
    steps: int,
    seed: int,
) -> Any:
    """Return the trade-off on a part of the data; the candidates of a text are found once."""
    import numpy as np

    from longtail.decide.rule import by_probability
    from longtail.report import tradeoff
    from longtail.tagger.tail import lean

    if not tagger.has_probabilities:
        raise ValueError(
            "this model has scores, but no probabilities to decide with: train it with calibration"
        )
    truth = tagger.truth(rows.Y, label_names, rows.unknown_labels)
    eta = tagger.model_.predict_proba_topk(tagger.transform(rows.inputs), k=max(k, _CANDIDATES))
    counts = tagger.label_counts_ / max(tagger.n_rows_, 1)
    others = {}
    for tail in _TAILS:
        chosen = lean(eta, tagger.inverse_propensity(), tail, k)
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
