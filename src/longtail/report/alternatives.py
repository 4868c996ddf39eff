"""Other answers to the same rows, set against those of the report: of decision rules, and of the
parts of a fused model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail import metrics
from longtail.answers.topk import TopK
from longtail.metrics import LabelBins, Matches
from longtail.metrics.named import number_names
from longtail.report.formatting import count_range
from longtail.report.measure import values_of
from longtail.report.slices import Bin, by_bin

__all__ = ["PartResult", "RuleResult", "by_rule", "match_rules", "measure_parts"]

THESE = "these answers"  # what the answers of the report itself are called


@dataclass(frozen=True)
class RuleResult:
    """One rule at the largest k: its ``metrics``, its ``bins`` from head to tail, and ``sentence``:
    what changes for rare labels and what it costs on frequent ones, for people who do not read
    tables (empty for the answers of the report itself).
    """

    name: str
    metrics: dict[str, float]
    bins: tuple[Bin, ...]
    sentence: str


def match_rules(
    rules: Mapping[str, Any] | None,
    matches: Matches,
    k: int,
    filters: Any,
    n_jobs: int | None,
    label_names: Sequence[str] | None = None,
) -> dict[str, Matches]:
    """Return the answers of every rule, matched with the truth of the report."""
    out: dict[str, Matches] = {}
    if not isinstance(rules, (Mapping, type(None))):
        raise TypeError(f"rules must map names to answers, got {type(rules).__name__}")
    for name, top in (rules or {}).items():
        if str(name) == THESE:
            raise ValueError(f"{THESE!r} is what the report's own answers are called: rename it")
        if isinstance(top, metrics.Matches):
            raise TypeError(f"rules[{name!r}] must be a TopK, ranked labels or a matrix of scores")
        try:
            _, _, (top,) = number_names(None, [top], label_names)
            if filters is not None:
                top = metrics.filter_predictions(top, filters, k)
            out[str(name)] = metrics.match(matches.truth, top, k, n_jobs=n_jobs)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"rules[{name!r}]: {error}") from None
    return out


def by_rule(
    found: Mapping[str, Matches], matches: Matches, bins: LabelBins, k: int
) -> tuple[RuleResult, ...]:
    """Return the report's own answers first, then every other rule; empty where there is no
    other.
    """
    if not found:
        return ()
    own = _result(THESE, matches, bins, k, None)
    return (own, *(_result(name, other, bins, k, own) for name, other in found.items()))


def _result(
    name: str, matches: Matches, bins: LabelBins, k: int, base: RuleResult | None
) -> RuleResult:
    values = values_of([f"P@{k}", f"R@{k}", f"macro-F1@{k}", f"coverage@{k}"], matches)
    counts = matches.label_counts(k)
    hits, answers = (float(np.sum(c)) for c in (counts.true_positives, counts.predicted))
    values["answers right"] = hits / answers if answers else 0.0
    values["answers a row"] = answers / max(matches.n_rows, 1)
    made = by_bin(matches, bins, (k,))
    sentence = "" if base is None else _sentence(name, values, made, base, k)
    return RuleResult(name, values, made, sentence)


def _sentence(
    name: str, values: dict[str, float], bins: tuple[Bin, ...], base: RuleResult, k: int
) -> str:
    """Rare labels first: that is what the rule is for; then what it costs."""
    rare, frequent = bins[-1], bins[0]
    old_rare, old_frequent = base.bins[-1], base.bins[0]
    right = (
        f"{100 * values['answers right']:.0f} of 100 answers are right instead of "
        f"{100 * base.metrics['answers right']:.0f}"
    )
    if len(bins) == 1:
        return f"With {name}, {_found(rare, old_rare, k, '')}; {right}."
    covered, was = rare.coverage[k] * rare.n_present, old_rare.coverage[k] * rare.n_present
    return (
        f"With {name}, {_found(rare, old_rare, k, 'rare')}, and {covered:,.0f} of the "
        f"{rare.n_present:,} rare labels present in the test rows at least once instead of "
        f"{was:,.0f}. "
        f"In return, {_found(frequent, old_frequent, k, 'frequent')}, and {right}."
    )


def _found(now: Bin, before: Bin, k: int, kind: str) -> str:
    span = count_range(now.min_count, now.max_count)
    what = f"{kind} labels ({span} examples each)" if kind else "labels"
    return (
        f"{100 * now.recall[k]:.0f} of 100 true {what} are found instead of "
        f"{100 * before.recall[k]:.0f}"
    )


@dataclass(frozen=True)
class PartResult:
    """Fractions by name, such as ``P@1``: of the whole, of one part alone, or of the whole without
    it. ``name``: "whole", or that of the part; ``seconds``: of its training.
    """

    name: str
    alone: dict[str, float]
    without: dict[str, float]
    seconds: float | None = None


def measure_parts(
    Y: Any,
    whole: TopK,
    alone: Mapping[str, TopK],
    without: Mapping[str, TopK],
    propensity: Any,
    *,
    seconds: Mapping[str, float] | None = None,
) -> tuple[PartResult, ...]:
    """Measure the answers of a fused model and of its parts, by their names; the whole is first."""
    names = [*(f"P@{k}" for k in sorted({1, whole.k})), f"PSP@{whole.k}"]

    def measured(top: TopK) -> dict[str, float]:
        return values_of(names, metrics.match(Y, top, whole.k), propensity)

    parts = [
        PartResult(name, measured(top), measured(without[name]), (seconds or {}).get(name))
        for name, top in alone.items()
    ]
    return PartResult("whole", measured(whole), {}), *parts
