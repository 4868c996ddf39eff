"""Which numbers of a report should not be taken at face value, said in plain language.

Each check is a function from what is known to at most one ``Note``. A note names the metrics it concerns, the reason, and what to
look at instead. No number is changed by a check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.report.facts import RARE, Facts

__all__ = ["Note", "notes"]

FEW_ROWS = 100
HEAVY_WEIGHT = 100.0


@dataclass(frozen=True)
class Note:
    """A warning. ``code`` is stable, for programs; ``concerns`` lists metric symbols; ``text`` is for people."""

    code: str
    concerns: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Known:
    """What the checks look at. ``values`` are keyed like ``P@1``; ``inverse`` (L,) are inverse propensities."""

    facts: Facts
    values: Mapping[str, float]
    ks: tuple[int, ...]
    label_positives: np.ndarray
    inverse: np.ndarray | None
    propensity_facts: Mapping[str, Any] | None


def notes(known: Known) -> tuple[Note, ...]:
    """All that apply, the gravest first."""
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
    above = {
        k: v for k in known.ks if (v := known.values.get(f"PSP unnormalised@{k}", 0.0)) > 1.0
    }
    if above:
        shown = ", ".join(f"{100 * v:.0f} % at k = {k}" for k, v in above.items())
        yield Note(
            "psp-above-one",
            ("PSP", "PSR", "PSnDCG", "PSP unnormalised"),
            f"Unnormalised PSP is {shown}. It should estimate a precision, which cannot exceed 100 %, so these propensities "
            "do not fit this data. Normalised PSP hides this: read it as a score that favours rare labels, for comparing "
            "models on this data set only, not as an estimate of precision with all labels known.",
        )


def _impossible_propensities(known: Known) -> Iterator[Note]:
    if known.inverse is None:
        return
    below = int((known.inverse < 1.0).sum())
    if below:
        yield Note(
            "propensity-above-one",
            ("PSP", "PSR", "PSnDCG"),
            f"{_count(below, 'label')} {'has' if below == 1 else 'have'} a propensity above 1, which no probability can be.",
        )
    implied = known.label_positives * known.inverse
    beyond = int((implied > known.facts.n_rows).sum())
    if beyond:
        yield Note(
            "propensity-too-small",
            ("PSP", "PSR", "PSnDCG"),
            f"For {_count(beyond, 'label')} the propensities imply more relevant rows than there are rows: they are too small.",
        )


def _heavy_weights(known: Known) -> Iterator[Note]:
    if known.inverse is None:
        return
    heaviest = float(known.inverse[known.label_positives > 0].max(initial=0.0))
    if heaviest > HEAVY_WEIGHT:
        yield Note(
            "heavy-weights",
            ("PSP", "PSR", "PSnDCG"),
            f"One hit on the rarest label counts as much as {heaviest:,.0f} ordinary hits: propensity-scored metrics rest on few "
            "answers and vary much.",
        )


def _foreign_propensities(known: Known) -> Iterator[Note]:
    fitted_on = (known.propensity_facts or {}).get("n_rows")
    trained_on = known.facts.n_train_rows
    if fitted_on is not None and trained_on is not None and fitted_on != trained_on:
        yield Note(
            "propensity-of-other-data",
            ("PSP", "PSR", "PSnDCG"),
            f"The propensities were fitted on {_count(fitted_on, 'row')}, but train_Y has {trained_on:,}. They belong to the "
            "training split; fitted elsewhere, PSP cannot be compared with published numbers.",
        )
    if fitted_on is not None and fitted_on <= 2:
        yield Note(
            "propensity-undefined",
            ("PSP", "PSR", "PSnDCG"),
            "The propensity formula is not defined for fewer than 3 training rows: all propensities are 1, and PSP is plain "
            "precision.",
        )


def _short_rows(known: Known) -> Iterator[Note]:
    facts = known.facts
    labelled = facts.n_rows - facts.unlabelled_rows
    ks = [k for k in known.ks if labelled and facts.short_rows[k] > labelled / 2]
    if ks:
        shown = ", ".join(f"{100 * facts.ceiling[k]:.1f} % at k = {k}" for k in ks)
        yield Note(
            "k-above-labels",
            ("P", "macro-P", "micro-P"),
            f"Most rows have fewer true labels than answers, so even a perfect ranking has a precision of only {shown}. Read "
            "precision against that, or read nDCG and recall.",
        )


def _unlabelled_rows(known: Known) -> Iterator[Note]:
    facts = known.facts
    if facts.unlabelled_rows:
        yield Note(
            "rows-without-labels",
            ("P", "R", "nDCG", "PSP"),
            f"{_count(facts.unlabelled_rows, 'row')} ({_share(facts.unlabelled_rows, facts.n_rows)}) "
            f"{'has' if facts.unlabelled_rows == 1 else 'have'} no true label; they stay in the means with the value 0. Some "
            "evaluators leave them out and report higher numbers.",
        )


def _short_answers(known: Known) -> Iterator[Note]:
    facts = known.facts
    k = max(known.ks)
    if facts.short_answers[k]:
        after = " after filtering: predict more labels a row than you evaluate" if facts.n_filters else ""
        yield Note(
            "short-answers",
            ("P", "R", "nDCG"),
            f"{_count(facts.short_answers[k], 'row')} ({_share(facts.short_answers[k], facts.n_rows)}) "
            f"{'has' if facts.short_answers[k] == 1 else 'have'} fewer than {k} answers{after}; empty slots count as wrong.",
        )


def _filtered_truth(known: Known) -> Iterator[Note]:
    n = known.facts.filtered_positives
    if n:
        yield Note(
            "filtered-truth",
            ("R", "nDCG", "P"),
            f"{_count(n, 'true pair')} {'is' if n == 1 else 'are'} on the filter list and can never be answered. Remove them from "
            "the truth too (longtail.metrics.filter_truth) unless the benchmark says otherwise.",
        )


def _absent_labels(known: Known) -> Iterator[Note]:
    facts = known.facts
    absent = facts.n_labels - facts.present_labels
    if absent > 0.05 * facts.n_labels:
        yield Note(
            "labels-without-support",
            ("macro-P", "macro-R", "macro-F1", "coverage"),
            f"{_count(absent, 'label')} ({_share(absent, facts.n_labels)}) {'has' if absent == 1 else 'have'} no positive in this test "
            f"set and count as 0 in means over all labels, which therefore cannot exceed "
            f"{_share(facts.present_labels, facts.n_labels)}. The rows marked 'present' leave them out.",
        )


def _rare_labels(known: Known) -> Iterator[Note]:
    facts = known.facts
    if facts.present_labels and facts.rare_labels > 0.25 * facts.present_labels:
        yield Note(
            "tiny-support",
            ("macro-P", "macro-R", "macro-F1", "coverage"),
            f"{_share(facts.rare_labels, facts.present_labels)} of the labels in the test set have fewer than {RARE} positives "
            "there. One more hit changes such a label's score by 20 points or more: trust means over labels, and their "
            "intervals, only roughly, and a single rare label's score not at all.",
        )


def _unseen_labels(known: Known) -> Iterator[Note]:
    facts = known.facts
    if facts.unseen_labels:
        yield Note(
            "unseen-labels",
            ("macro-R", "macro-F1", "coverage", "PSP"),
            f"{_count(facts.unseen_labels, 'label')} in the test set "
            f"({_share(facts.unseen_positives or 0.0, facts.n_positives)} of its positives) never "
            f"{'occurs' if facts.unseen_labels == 1 else 'occur'} in training. A model that learns labels from examples cannot answer "
            "them; they count as 0 in means over labels, and weigh most in propensity-scored metrics.",
        )


def _graded(known: Known) -> Iterator[Note]:
    if known.facts.graded:
        yield Note(
            "graded-truth",
            ("all",),
            "The truth is graded: a label of value 0.5 is half a hit. Evaluators that count every label as 1 report other numbers.",
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


def _share(part: float, whole: float) -> str:
    if not whole:
        return "0 %"
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 10 else f"{share:.2g} %"
