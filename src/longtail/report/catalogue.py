"""The metrics of a report: symbol, function, group, and what each says in one plain sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import longtail.metrics as metrics

__all__ = ["CATALOGUE", "LESS_IS_BETTER", "OVER", "Entry", "grouped"]

GROUPS = {
    "ranking": "Ranking, mean over rows",
    "propensity": "Propensity-scored",
    "label": "By label, mean over all labels",
    "present": "By label, mean over the labels present in the test rows",
    "pooled": "All decisions pooled",
}
#: Which labels a metric of a group is a mean over; the other groups have one reading only.
OVER = {"label": "over all labels", "present": "over the labels present in the test rows"}
LESS_IS_BETTER = {"Hamming"}


@dataclass(frozen=True)
class Entry:
    """One metric of a report. ``function`` is called as ``function(Y_true, top, k=k)``.

    ``symbol`` is the name the field uses; ``meaning`` completes "the value is ...". Metrics over
    labels have two readings, over all labels and over those present in the test rows: ``group`` and
    ``meaning`` say which it is, and symbols of the second end in "present".
    """

    symbol: str
    group: str
    function: Callable[..., float]
    meaning: str

    @property
    def needs_propensity(self) -> bool:
        """Whether ``function`` also takes ``p=``."""
        return self.group == "propensity"

    @property
    def is_label_wise(self) -> bool:
        """Whether it is made from confusion counts of labels, not from terms of rows."""
        return not hasattr(partial(self.function).func, "rows")

    def call(self, k: int, p: Any) -> partial[float]:
        """Return the function with ``k`` (and propensities) filled in, for the bootstrap."""
        options = {"p": p} if self.needs_propensity else {}
        return partial(self.function, k=k, **options)


_METRICS: dict[str, dict[str, tuple[Callable[..., float], str]]] = {
    "ranking": {
        "P": (metrics.precision_at_k, "the share of the k answers that are right"),
        "R": (metrics.recall_at_k, "the share of a row's labels found in k answers"),
        "nDCG": (
            metrics.ndcg_at_k,
            "like precision, but early answers weigh more; 100% is the best ranking",
        ),
        "hit rate": (
            metrics.hit_rate_at_k,
            "the share of rows with at least one right answer among k",
        ),
    },
    "propensity": {
        "PSP": (
            metrics.ps_precision_at_k,
            "precision in which a hit on label j counts 1/p_j, divided by the best reachable value",
        ),
        "PSR": (metrics.ps_recall_at_k, "recall with the same weights"),
        "PSnDCG": (metrics.ps_ndcg_at_k, "nDCG with the same weights"),
        "PSP unnormalised": (
            partial(metrics.ps_precision_at_k, normalize=False),
            "the estimate of precision on complete labels; above 100% it contradicts itself",
        ),
    },
    "label": {
        "macro-P": (
            metrics.macro_precision_at_k,
            "the precision of each label's predictions, averaged over all labels",
        ),
        "macro-R": (
            metrics.macro_recall_at_k,
            "the share of each label's rows that are found, averaged over all labels",
        ),
        "macro-F1": (metrics.macro_f1_at_k, "the F1 of each label, averaged over all labels"),
        "macro-BA": (
            metrics.macro_balanced_accuracy_at_k,
            "the mean of recall and specificity of each label, averaged over all labels; near 50% "
            "for labels never predicted",
        ),
        "macro-G": (
            metrics.macro_g_mean_at_k,
            "the geometric mean of recall and specificity of each label, averaged over all labels",
        ),
        "coverage": (
            metrics.coverage_at_k,
            "the share of all labels that are answered rightly at least once",
        ),
    },
    "present": {
        "macro-F1 present": (
            partial(metrics.macro_f1_at_k, labels="present"),
            "the F1 of each label, averaged over the labels present in the test rows",
        ),
        "coverage present": (
            partial(metrics.coverage_at_k, labels="present"),
            "the share of the labels present in the test rows that are answered rightly at least "
            "once",
        ),
    },
    "pooled": {
        "micro-P": (metrics.micro_precision_at_k, "precision of all answers together"),
        "micro-R": (metrics.micro_recall_at_k, "the share of all positives found"),
        "micro-F1": (metrics.micro_f1_at_k, "the harmonic mean of the two"),
        "Hamming": (
            metrics.hamming_loss_at_k,
            "the share of (row, label) decisions that are wrong; lower is better",
        ),
    },
}

CATALOGUE = tuple(
    Entry(symbol, group, function, meaning)
    for group, entries in _METRICS.items()
    for symbol, (function, meaning) in entries.items()
)


def grouped(names: Iterable[str]) -> list[tuple[str, list[tuple[Entry, list[str]]]]]:
    """Return headings, each with its metrics, each of them with its names such as ``P@1``."""
    named: dict[str, list[str]] = {}
    for name in names:
        named.setdefault(name.rpartition("@")[0], []).append(name)
    used = [entry for entry in CATALOGUE if entry.symbol in named]
    return [
        (heading, [(e, named[e.symbol]) for e in used if e.group == group])
        for group, heading in GROUPS.items()
        if any(e.group == group for e in used)
    ]
