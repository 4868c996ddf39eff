"""Which numbers of a report should not be taken at face value, said in plain language.

Each sentence names the reason, and what to look at instead. No number is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.report.facts import RARE, Facts

if TYPE_CHECKING:  # which has notes
    from longtail.report.summary import Report

__all__ = ["Note", "notes"]

FEW_ROWS = 100
HEAVY_WEIGHT = 100.0

_RANKED = ("P", "R", "nDCG")
_SCORED = ("PSP", "PSR", "PSnDCG")
_MACRO = ("macro-P", "macro-R", "macro-F1", "coverage")

# By code: the metrics a note concerns, and its sentences; {n} is such as "3 rows". The gravest come
# first.
_NOTES: dict[str, tuple[tuple[str, ...], str]] = {
    "few-rows": (("all",), "Only {n}: every number here is rough, and so is its interval."),
    "psp-above-one": (
        (*_SCORED, "PSP unnormalised"),
        "Unnormalised PSP is {shown}. It should estimate a precision, which cannot exceed 100%, so "
        "these propensities {fit} this data{doubt}. Normalised PSP hides this: read it as a score "
        "that favours rare labels, for comparing models on this data set only, not as an estimate "
        "of precision with all labels known.",
    ),
    "propensity-above-one": (
        _SCORED,
        "{n} {have} a propensity above 1, which is no probability. Propensity-scored metrics "
        "count hits on them as less than one.",
    ),
    "propensity-too-small": (
        _SCORED,
        "For {n} the propensities imply more relevant rows than there are rows: they are too "
        "small.",
    ),
    "propensity-of-other-data": (
        _SCORED,
        "The propensities were fitted on {n}, but train_Y has {trained:,}. They belong to the "
        "training split; fitted elsewhere, PSP cannot be compared with published numbers.",
    ),
    "propensity-undefined": (
        _SCORED,
        "The propensity formula is not defined for fewer than 3 training rows: all propensities "
        "are 1, and PSP is plain precision.",
    ),
    "heavy-weights": (
        _SCORED,
        "One hit on the label of lowest propensity counts as much as {heaviest:,.0f} plain hits: "
        "propensity-scored metrics rest on few answers and vary much.",
    ),
    "filtered-truth": (
        _RANKED,
        "{n} {are} on the filter list and can never be answered. Remove them from the truth "
        "too (longtail.metrics.filter_truth), unless the benchmark says otherwise.",
    ),
    "unseen-labels": (
        ("macro-R", "macro-F1", "coverage", "PSP"),
        "{n} of the test set ({share} of its positives) never occur{s} in training. A model that "
        "learns labels from examples cannot answer them; they count as 0 in means over labels, and "
        "weigh most in propensity-scored metrics.",
    ),
    "tiny-support": (
        _MACRO,
        "{share} of the labels in the test set have fewer than {rare} positives there. One more "
        "hit changes such a label's score by 20 points or more: trust means over labels, and their "
        "intervals, only roughly, and a single rare label's score not at all.",
    ),
    "labels-without-support": (
        _MACRO,
        "{n} ({share}) {have} no positive in this test set and count{s} as 0 in macro-P, "
        "macro-R, macro-F1 and coverage, which therefore cannot exceed {ceiling}. The rows marked "
        "'present' leave them out.",
    ),
    "k-above-labels": (
        ("P", "macro-P", "micro-P"),
        "Most rows have fewer true labels than answers, so even a perfect ranking has a precision "
        "of only {shown}. Read precision against that, or read nDCG and recall.",
    ),
    "rows-without-labels": (
        (*_RANKED, "PSP"),
        "{n} ({share}) {have} no true label and stay{s} in the means with the value 0. Some "
        "evaluators leave such rows out and report higher numbers.",
    ),
    "short-answers": (
        _RANKED,
        "{n} ({share}) {have} fewer than {k} answers, and empty slots count as wrong{advice}.",
    ),
    "graded-truth": (
        ("all",),
        "The truth is graded: a label of value 0.5 is half a hit. Evaluators that count every "
        "label as 1 report other numbers.",
    ),
}


@dataclass(frozen=True)
class Note:
    """A warning: ``code`` for programs, ``concerns`` (metric symbols), ``text`` for people."""

    code: str
    concerns: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def notes(report: Report, positives: np.ndarray, inverse: np.ndarray | None) -> tuple[Note, ...]:
    """Return all that apply to a report, the gravest first.

    ``positives`` (L,): of each label in the test set; ``inverse`` (L,): inverse propensities.
    """
    values = dict([*_of_rows(report.facts, report.ks), *_of_labels(report.facts)])
    if inverse is not None:
        values.update(_of_propensities(report, positives, inverse))
    return tuple(
        Note(code, concerns, text.format(**values[code]))
        for code, (concerns, text) in _NOTES.items()
        if code in values
    )


_Values = Iterator[tuple[str, dict[str, Any]]]


def _of_rows(facts: Facts, ks: tuple[int, ...]) -> _Values:
    n_rows, labelled = facts.n_rows, facts.n_rows - facts.unlabelled_rows
    if n_rows < FEW_ROWS:
        yield "few-rows", _counted(n_rows, "test row")
    if facts.filtered_positives:
        yield "filtered-truth", _counted(facts.filtered_positives, "true pair")
    above = [k for k in ks if facts.short_rows[k] > labelled / 2]
    if above:
        shown = ", ".join(f"{100 * facts.ceiling[k]:.1f}% at k = {k}" for k in above)
        yield "k-above-labels", {"shown": shown}
    if facts.unlabelled_rows:
        yield "rows-without-labels", _counted(facts.unlabelled_rows, "row", n_rows)
    k = max(ks)
    if facts.short_answers[k]:
        advice = ": ask for more answers than k before filtering" if facts.n_filters else ""
        yield "short-answers", _counted(facts.short_answers[k], "row", n_rows, k=k, advice=advice)
    if facts.graded:
        yield "graded-truth", {}


def _of_labels(facts: Facts) -> _Values:
    present, absent = facts.present_labels, facts.n_labels - facts.present_labels
    if facts.unseen_labels:
        share = _share(facts.unseen_positives or 0.0, facts.n_positives)
        yield "unseen-labels", _counted(facts.unseen_labels, "label", share=share)
    if facts.rare_labels > 0.25 * present:
        yield "tiny-support", {"share": _share(facts.rare_labels, present), "rare": RARE}
    if absent > 0.05 * facts.n_labels:
        ceiling = _share(present, facts.n_labels)
        yield "labels-without-support", _counted(absent, "label", facts.n_labels, ceiling=ceiling)


def _of_propensities(report: Report, positives: np.ndarray, inverse: np.ndarray) -> _Values:
    facts = report.facts
    unnormalised = [report.metrics[f"PSP unnormalised@{k}"] for k in report.ks]
    above = [m for m in unnormalised if m.value > 1.0]
    if above:
        shown = ", ".join(f"{100 * m.value:.1f}% at k = {m.k}" for m in above)
        chance = all(m.low is not None and m.low <= 1.0 for m in above)
        doubt = ", although it may still be chance" if chance else ""
        fit = {"fit": "hardly fit" if chance else "do not fit", "doubt": doubt}
        yield "psp-above-one", {"shown": shown, **fit}
    below = int((inverse < 1.0).sum())
    if below:
        yield "propensity-above-one", _counted(below, "label")
    beyond = int((positives * inverse > facts.n_rows).sum())
    if beyond:
        yield "propensity-too-small", _counted(beyond, "label")
    fitted_on = (report.propensity or {}).get("n_rows")
    if fitted_on is not None and facts.n_train_rows not in (None, fitted_on):
        yield "propensity-of-other-data", _counted(fitted_on, "row", trained=facts.n_train_rows)
    if fitted_on is not None and fitted_on <= 2:
        yield "propensity-undefined", {}
    heaviest = float(inverse[positives > 0].max(initial=0.0))
    if heaviest > HEAVY_WEIGHT:
        yield "heavy-weights", {"heaviest": heaviest}


def _counted(n: float, what: str, whole: float = 0.0, **more: Any) -> dict[str, Any]:
    """Return what sentences say of a number: itself, its share, and the forms of verbs."""
    one = n == 1
    verbs = (
        {"have": "has", "are": "is", "s": "s"} if one else {"have": "have", "are": "are", "s": ""}
    )
    counted = f"{n:,.0f} {what}{'' if one else 's'}"
    return {"n": counted, "share": _share(n, whole), **verbs, **more}


def _share(part: float, whole: float) -> str:
    if not whole:
        return "0%"
    share = 100 * part / whole
    return f"{share:.0f}%" if share >= 10 else f"{share:.2g}%"
