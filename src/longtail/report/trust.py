"""Which numbers of a report should not be taken at face value, said in plain language.

Each check is a function from what is known to the notes that apply, mostly one or none. A note
names the metrics it concerns, the reason, and what to look at instead. No number is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.report.facts import RARE, Facts
from longtail.report.measure import Measurement

__all__ = ["Known", "Note", "notes"]

FEW_ROWS = 100
HEAVY_WEIGHT = 100.0

_SCORED = ("PSP", "PSR", "PSnDCG")
_MACRO = ("macro-P", "macro-R", "macro-F1", "coverage")


@dataclass(frozen=True)
class Note:
    """A warning: ``code`` for programs, ``concerns`` (metric symbols), ``text`` for people."""

    code: str
    concerns: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Known:
    """What the checks look at.

    ``metrics`` by name such as ``P@1``; ``label_positives`` (L,) in the test set; ``inverse`` (L,)
    inverse propensities; ``propensity_facts`` what the model says of itself.
    """

    facts: Facts
    metrics: Mapping[str, Measurement]
    ks: tuple[int, ...]
    label_positives: np.ndarray
    inverse: np.ndarray | None
    propensity_facts: Mapping[str, Any] | None


def notes(known: Known) -> tuple[Note, ...]:
    """Return all that apply, the gravest first."""
    return tuple(note for check in _CHECKS for note in check(known))


def _few_rows(known: Known) -> Iterator[Note]:
    n = known.facts.n_rows
    if n < FEW_ROWS:
        yield Note(
            "few-rows",
            ("all",),
            f"Only {_count(n, 'test row')}: every number here is rough, and so is its interval.",
        )


def _unnormalised_above_one(known: Known) -> Iterator[Note]:
    found = [known.metrics.get(f"PSP unnormalised@{k}") for k in known.ks]
    above = [m for m in found if m is not None and m.value > 1.0]
    if not above:
        return
    shown = ", ".join(f"{100 * m.value:.1f}% at k = {m.k}" for m in above)
    certain = any(m.low is None or m.low > 1.0 for m in above)
    verdict = (
        "so these propensities do not fit this data"
        if certain
        else "so these propensities hardly fit this data, although it may still be chance"
    )
    yield Note(
        "psp-above-one",
        (*_SCORED, "PSP unnormalised"),
        f"Unnormalised PSP is {shown}. It should estimate a precision, which cannot exceed 100%, "
        f"{verdict}. Normalised PSP hides this: read it as a score that favours rare labels, for "
        "comparing models on this data set only, not as an estimate of precision with all labels "
        "known.",
    )


def _impossible_propensities(known: Known) -> Iterator[Note]:
    if known.inverse is None:
        return
    below = int((known.inverse < 1.0).sum())
    if below:
        yield Note(
            "propensity-above-one",
            _SCORED,
            f"{_count(below, 'label')} {_have(below)} a propensity above 1, which is no "
            "probability. Propensity-scored metrics count hits on them as less than one.",
        )
    beyond = int((known.label_positives * known.inverse > known.facts.n_rows).sum())
    if beyond:
        yield Note(
            "propensity-too-small",
            _SCORED,
            f"For {_count(beyond, 'label')} the propensities imply more relevant rows than there "
            "are rows: they are too small.",
        )


def _foreign_propensities(known: Known) -> Iterator[Note]:
    fitted_on = (known.propensity_facts or {}).get("n_rows")
    trained_on = known.facts.n_train_rows
    if fitted_on is None:
        return
    if trained_on is not None and fitted_on != trained_on:
        yield Note(
            "propensity-of-other-data",
            _SCORED,
            f"The propensities were fitted on {_count(fitted_on, 'row')}, but train_Y has "
            f"{trained_on:,}. They belong to the training split; fitted elsewhere, PSP cannot be "
            "compared with published numbers.",
        )
    if fitted_on <= 2:
        yield Note(
            "propensity-undefined",
            _SCORED,
            "The propensity formula is not defined for fewer than 3 training rows: all "
            "propensities are 1, and PSP is plain precision.",
        )


def _heavy_weights(known: Known) -> Iterator[Note]:
    if known.inverse is None:
        return
    heaviest = float(known.inverse[known.label_positives > 0].max(initial=0.0))
    if heaviest > HEAVY_WEIGHT:
        yield Note(
            "heavy-weights",
            _SCORED,
            f"One hit on the label of lowest propensity counts as much as {heaviest:,.0f} plain "
            "hits: propensity-scored metrics rest on few answers and vary much.",
        )


def _filtered_truth(known: Known) -> Iterator[Note]:
    n = known.facts.filtered_positives
    if n:
        yield Note(
            "filtered-truth",
            ("P", "R", "nDCG"),
            f"{_count(n, 'true pair')} {'is' if n == 1 else 'are'} on the filter list and can "
            "never be answered. Remove them from the truth too (longtail.metrics.filter_truth), "
            "unless the benchmark says otherwise.",
        )


def _unseen_labels(known: Known) -> Iterator[Note]:
    facts, n = known.facts, known.facts.unseen_labels
    if n:
        share = _share(facts.unseen_positives or 0.0, facts.n_positives)
        yield Note(
            "unseen-labels",
            ("macro-R", "macro-F1", "coverage", "PSP"),
            f"{_count(n, 'label')} of the test set ({share} of its positives) never "
            f"{'occurs' if n == 1 else 'occur'} in training. A model that learns labels from "
            "examples cannot answer them; they count as 0 in means over labels, and weigh most in "
            "propensity-scored metrics.",
        )


def _rare_labels(known: Known) -> Iterator[Note]:
    facts = known.facts
    if facts.present_labels and facts.rare_labels > 0.25 * facts.present_labels:
        share = _share(facts.rare_labels, facts.present_labels)
        yield Note(
            "tiny-support",
            _MACRO,
            f"{share} of the labels in the test set have fewer than {RARE} positives there. One "
            "more hit changes such a label's score by 20 points or more: trust means over labels, "
            "and their intervals, only roughly, and a single rare label's score not at all.",
        )


def _absent_labels(known: Known) -> Iterator[Note]:
    facts = known.facts
    absent = facts.n_labels - facts.present_labels
    if absent > 0.05 * facts.n_labels:
        yield Note(
            "labels-without-support",
            _MACRO,
            f"{_count(absent, 'label')} ({_share(absent, facts.n_labels)}) {_have(absent)} no "
            f"positive in this test set and {'counts' if absent == 1 else 'count'} as 0 in "
            "macro-P, macro-R, macro-F1 and coverage, which therefore cannot exceed "
            f"{_share(facts.present_labels, facts.n_labels)}. The rows marked 'present' leave them "
            "out.",
        )


def _short_rows(known: Known) -> Iterator[Note]:
    facts = known.facts
    labelled = facts.n_rows - facts.unlabelled_rows
    ks = [k for k in known.ks if facts.short_rows[k] > labelled / 2]
    if ks:
        shown = ", ".join(f"{100 * facts.ceiling[k]:.1f}% at k = {k}" for k in ks)
        yield Note(
            "k-above-labels",
            ("P", "macro-P", "micro-P"),
            "Most rows have fewer true labels than answers, so even a perfect ranking has a "
            f"precision of only {shown}. Read precision against that, or read nDCG and recall.",
        )


def _unlabelled_rows(known: Known) -> Iterator[Note]:
    facts, n = known.facts, known.facts.unlabelled_rows
    if n:
        yield Note(
            "rows-without-labels",
            ("P", "R", "nDCG", "PSP"),
            f"{_count(n, 'row')} ({_share(n, facts.n_rows)}) {_have(n)} no true label and "
            f"{'stays' if n == 1 else 'stay'} in the means with the value 0. Some evaluators leave "
            "such rows out and report higher numbers.",
        )


def _short_answers(known: Known) -> Iterator[Note]:
    facts, k = known.facts, max(known.ks)
    n = facts.short_answers[k]
    if n:
        advice = ": ask for more answers than k before filtering" if facts.n_filters else ""
        yield Note(
            "short-answers",
            ("P", "R", "nDCG"),
            f"{_count(n, 'row')} ({_share(n, facts.n_rows)}) {_have(n)} fewer than {k} answers, "
            f"and empty slots count as wrong{advice}.",
        )


def _graded(known: Known) -> Iterator[Note]:
    if known.facts.graded:
        yield Note(
            "graded-truth",
            ("all",),
            "The truth is graded: a label of value 0.5 is half a hit. Evaluators that count every "
            "label as 1 report other numbers.",
        )


_CHECKS: tuple[Callable[[Known], Iterator[Note]], ...] = (
    _few_rows,
    _unnormalised_above_one,
    _impossible_propensities,
    _foreign_propensities,
    _heavy_weights,
    _filtered_truth,
    _unseen_labels,
    _rare_labels,
    _absent_labels,
    _short_rows,
    _unlabelled_rows,
    _short_answers,
    _graded,
)


def _count(n: float, what: str) -> str:
    return f"{n:,.0f} {what}{'' if n == 1 else 's'}"


def _have(n: float) -> str:
    return "has" if n == 1 else "have"


def _share(part: float, whole: float) -> str:
    if not whole:
        return "0%"
    share = 100 * part / whole
    return f"{share:.0f}%" if share >= 10 else f"{share:.2g}%"
