"""Evaluation reports: ``evaluate`` makes one, ``compare`` sets several side by side, and
``psp_diagnostic`` shows what normalisation hides in propensity-scored precision; ``tradeoff`` draws
what a little precision buys for rare labels.

``catalogue`` lists the metrics, ``facts`` what is known of the data, ``slices`` looks by frequency
and label, ``rules`` sets decision rules side by side, ``trust`` says which numbers not to take at
face value; ``table``, ``page`` and ``charts`` render.
"""

from longtail.report.comparison import Comparison, compare
from longtail.report.evaluation import evaluate
from longtail.report.measure import Measurement
from longtail.report.psp import PSPDiagnostic, psp_diagnostic
from longtail.report.rules import RuleResult
from longtail.report.summary import Report
from longtail.report.tradeoffs import Tradeoff, TradeoffPoint, tradeoff
from longtail.report.trust import Note

__all__ = [
    "Comparison",
    "Measurement",
    "Note",
    "PSPDiagnostic",
    "Report",
    "RuleResult",
    "Tradeoff",
    "TradeoffPoint",
    "compare",
    "evaluate",
    "psp_diagnostic",
    "tradeoff",
]
