"""Metrics: one function each, all called as ``metric(Y_true, top, ...)``, all returning a fraction.

``Y_true`` is a label matrix (n, L), values in (0, 1], or a list of label-id lists. ``top`` is a
``TopK``, ranked label ids, or scores (n, L) of floats that are ranked with ties to the smaller
label id (``longtail._forms`` tells them apart). Conventions, the same everywhere: 0/0 is 0; an
empty slot is a wrong answer for metrics of rankings and no answer for metrics of sets; rows without
labels stay in the mean; macro means run over all L labels; propensity-scored metrics are
normalised. ``compat=`` switches to another evaluator's conventions
(``longtail.metrics.conventions``).

One match serves many metrics::

    m = match(Y_true, top)                 # the only pass over the truth
    {k: precision_at_k(Y_true, m, k) for k in (1, 3, 5)}

Where to look: ``ranking`` (P, R, F1, DCG, nDCG, hit rate, Hamming), ``propensity_scored``,
``label_wise`` (macro, coverage, confusion counts), ``micro``, ``bins`` (head to tail),
``bootstrap`` (intervals), ``filters`` (filter pairs), ``calibration`` (probabilities).
"""

from longtail.metrics.bins import (
    BinContribution,
    LabelBins,
    contribution_by_bin,
    frequency_bins,
)
from longtail.metrics.bootstrap import Interval, bootstrap_interval, bootstrap_intervals
from longtail.metrics.calibration import (
    Reliability,
    expected_calibration_error,
    reliability,
)
from longtail.metrics.confusion import ConfusionCounts
from longtail.metrics.filters import filter_predictions, filter_truth
from longtail.metrics.label_wise import (
    confusion_at_k,
    coverage_at_k,
    macro_balanced_accuracy_at_k,
    macro_f1_at_k,
    macro_fowlkes_mallows_at_k,
    macro_g_mean_at_k,
    macro_precision_at_k,
    macro_recall_at_k,
)
from longtail.metrics.matches import Matches
from longtail.metrics.matching import match
from longtail.metrics.micro import (
    micro_balanced_accuracy_at_k,
    micro_f1_at_k,
    micro_fowlkes_mallows_at_k,
    micro_g_mean_at_k,
    micro_precision_at_k,
    micro_recall_at_k,
)
from longtail.metrics.propensity_scored import (
    ps_dcg_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
    ps_recall_at_k,
)
from longtail.metrics.ranking import (
    dcg_at_k,
    f1_at_k,
    hamming_loss_at_k,
    hit_rate_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
)
from longtail.metrics.rows import Rows

__all__ = [
    "BinContribution",
    "ConfusionCounts",
    "Interval",
    "LabelBins",
    "Matches",
    "Reliability",
    "Rows",
    "bootstrap_interval",
    "bootstrap_intervals",
    "confusion_at_k",
    "contribution_by_bin",
    "coverage_at_k",
    "dcg_at_k",
    "expected_calibration_error",
    "f1_at_k",
    "filter_predictions",
    "filter_truth",
    "frequency_bins",
    "hamming_loss_at_k",
    "hit_rate_at_k",
    "macro_balanced_accuracy_at_k",
    "macro_f1_at_k",
    "macro_fowlkes_mallows_at_k",
    "macro_g_mean_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "match",
    "micro_balanced_accuracy_at_k",
    "micro_f1_at_k",
    "micro_fowlkes_mallows_at_k",
    "micro_g_mean_at_k",
    "micro_precision_at_k",
    "micro_recall_at_k",
    "ndcg_at_k",
    "precision_at_k",
    "ps_dcg_at_k",
    "ps_ndcg_at_k",
    "ps_precision_at_k",
    "ps_recall_at_k",
    "recall_at_k",
    "reliability",
]
