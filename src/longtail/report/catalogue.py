"""The metrics of a report: symbol, function, group, and what each says in one plain sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import longtail.metrics as metrics

__all__ = ["CATALOGUE", "GROUPS", "OVER", "Entry"]

GROUPS = {
    "ranking": "Ranking, mean over rows",
    "propensity": "Propensity-scored",
    "label": "By label, mean over all labels",
    "present": "By label, mean over the labels present in the test rows",
    "pooled": "All decisions pooled",
}
#: Which labels a metric of a group is a mean over; the other groups have one reading only.
OVER = {"label": "over all labels", "present": "over the labels present in the test rows"}


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
    lower_is_better: bool = False

    @property
    def needs_propensity(self) -> bool:
        """Whether ``function`` also takes ``p=``."""
        return self.group == "propensity"

    @property
    def over(self) -> str | None:
        """Which labels it is a mean over, where there are two readings."""
        return OVER.get(self.group)

    @property
    def is_label_wise(self) -> bool:
        """Whether it is made from confusion counts of labels, not from terms of rows."""
        return not hasattr(self._base(), "rows")

    def call(self, k: int, p: Any) -> partial[float]:
        """Return the function with ``k`` (and propensities) filled in, for the bootstrap."""
        base, options = self._base(), dict(getattr(self.function, "keywords", {}))
        if self.needs_propensity:
            options["p"] = p
        return partial(base, k=k, **options)

    def _base(self) -> Callable[..., float]:
        return self.function.func if isinstance(self.function, partial) else self.function


CATALOGUE = (
    Entry("P", "ranking", metrics.precision_at_k, "the share of the k answers that are right"),
    Entry("R", "ranking", metrics.recall_at_k, "the share of a row's labels found in k answers"),
    Entry(
        "nDCG",
        "ranking",
        metrics.ndcg_at_k,
        "like precision, but early answers weigh more; 100% is the best ranking",
    ),
    Entry(
        "hit rate",
        "ranking",
        metrics.hit_rate_at_k,
        "the share of rows with at least one right answer among k",
    ),
    Entry(
        "PSP",
        "propensity",
        metrics.ps_precision_at_k,
        "precision in which a hit on label j counts 1/p_j, divided by the best reachable value",
    ),
    Entry("PSR", "propensity", metrics.ps_recall_at_k, "recall with the same weights"),
    Entry("PSnDCG", "propensity", metrics.ps_ndcg_at_k, "nDCG with the same weights"),
    Entry(
        "PSP unnormalised",
        "propensity",
        partial(metrics.ps_precision_at_k, normalize=False),
        "the estimate of precision on complete labels; above 100% it contradicts itself",
    ),
    Entry(
        "macro-P",
        "label",
        metrics.macro_precision_at_k,
        "the precision of each label's predictions, averaged over all labels",
    ),
    Entry(
        "macro-R",
        "label",
        metrics.macro_recall_at_k,
        "the share of each label's rows that are found, averaged over all labels",
    ),
    Entry(
        "macro-F1", "label", metrics.macro_f1_at_k, "the F1 of each label, averaged over all labels"
    ),
    Entry(
        "macro-BA",
        "label",
        metrics.macro_balanced_accuracy_at_k,
        "the mean of recall and specificity of each label, averaged over all labels; near 50% for "
        "labels never predicted",
    ),
    Entry(
        "macro-G",
        "label",
        metrics.macro_g_mean_at_k,
        "the geometric mean of recall and specificity of each label, averaged over all labels",
    ),
    Entry(
        "coverage",
        "label",
        metrics.coverage_at_k,
        "the share of all labels that are answered rightly at least once",
    ),
    Entry(
        "macro-F1 present",
        "present",
        partial(metrics.macro_f1_at_k, labels="present"),
        "the F1 of each label, averaged over the labels present in the test rows",
    ),
    Entry(
        "coverage present",
        "present",
        partial(metrics.coverage_at_k, labels="present"),
        "the share of the labels present in the test rows that are answered rightly at least once",
    ),
    Entry("micro-P", "pooled", metrics.micro_precision_at_k, "precision of all answers together"),
    Entry("micro-R", "pooled", metrics.micro_recall_at_k, "the share of all positives found"),
    Entry("micro-F1", "pooled", metrics.micro_f1_at_k, "the harmonic mean of the two"),
    Entry(
        "Hamming",
        "pooled",
        metrics.hamming_loss_at_k,
        "the share of (row, label) decisions that are wrong; lower is better",
        lower_is_better=True,
    ),
)
