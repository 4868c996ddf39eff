"""``longtail inspect``: what is in a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli import options as opt
from longtail.cli.compare import SHOWN
from longtail.cli.models import load_tagger
from longtail.cli.output import check_writable, note, print_json

__all__ = ["command", "facts_of"]


def command(
    model: opt.ModelFolder,
    verify: Annotated[bool, typer.Option(help="Read every byte and compare checksums.")] = False,
    card: Annotated[
        bool, typer.Option("--card", help="Write a model card (Markdown) instead.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the evaluation that was kept, as an HTML page.")
    ] = None,
    json: opt.Json = False,
) -> None:
    """Tell what a model is: type, labels, size, where it comes from, and how good it was.

    Example:  longtail inspect model --card > model-card.md
    """
    from longtail.report.catalogue import OVER
    from longtail.report.formatting import printable

    check_writable(report, "--report")
    facts = facts_of(model, verify=verify)
    if report is not None:
        report.write_text(load_tagger(model).report_page(), encoding="utf-8")
        note(f"report: {report}")
    if card:
        from longtail.cli.card import model_card

        print(model_card(load_tagger(model), model, facts["bytes"]), end="")
        return
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        if name == "measured":
            shown = {m: value[m] for m in SHOWN if m in value}
            print("measured: " + ", ".join(f"{m} {100 * v:.1f} %" for m, v in shown.items()))
            print(f"  present: {OVER['present']}")
        elif isinstance(value, dict):
            print(f"{name}:")
            for key, inner in value.items():
                print(printable(f"  {key}: {inner}"))
        else:
            print(printable(f"{name}: {f'{value:,}' if isinstance(value, int) else value}"))


def facts_of(path: Path, *, verify: bool) -> dict[str, Any]:
    """Return plain facts about a saved model of any type."""
    import longtail as lt
    from longtail import persist
    from longtail.tagger import Tagger

    state = persist.load(path, verify=verify)
    found = lt.load(path)
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    facts: dict[str, Any] = {"path": str(path), "type": state.type, "bytes": size}
    if not isinstance(found, Tagger):
        facts["labels"] = getattr(found, "n_labels_", None)
        facts["parameters"] = _shown(found)
        return facts
    facts["choice"] = found.choice_
    facts["labels"] = len(found.vocabulary_)
    facts["training rows"] = found.n_rows_
    facts["features"] = int(found.model_.n_features_in_)
    facts["fields"] = None if found.fields_ is None else ", ".join(found.fields_)
    facts["scores"] = "probabilities" if found.has_probabilities else "scores, not probabilities"
    facts["model"] = repr(found.model_)
    facts["vectorizer"] = repr(found.vectorizer_)
    if found.provenance_ is not None:
        facts["made"] = _made(found.provenance_)
    if found.report_ is not None:
        if found.report_.measured_on:
            facts["measured on"] = found.report_.measured_on
        facts["measured"] = {name: round(found.report_[name], 4) for name in found.report_}
    return facts


def _made(provenance: dict[str, Any]) -> dict[str, Any]:
    """Where a model comes from, one plain value per name."""
    out: dict[str, Any] = {}
    for name, value in provenance.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        out |= {f"{name} {key}".strip(): item for key, item in inner if item is not None}
    return out


def _shown(estimator: Any) -> dict[str, str]:
    return {name: repr(value) for name, value in estimator.get_params(deep=False).items()}
