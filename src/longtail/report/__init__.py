"""Evaluation reports, from answers to a page that says which numbers to trust.

::

    Y_true, top ──► facts ──► measure ──► slices ──► trust ──► summary (``Report``) ◄──► JSON
                    what is   every       by         which       │
                    known     metric of   frequency  numbers     └──► rendering, table, charts
                              catalogue   and label  not to                     │
                                                     believe                    ▼
                                                            templates: text, HTML

``evaluate`` (``evaluation``) makes a report, ``compare`` sets several side by side,
``psp_diagnostic`` shows what normalisation hides in propensity-scored precision, and ``tradeoff``
draws what a little precision buys for rare labels. ``calibration`` looks at probabilities,
``alternatives`` at other decision rules and at the parts of a fused model.
"""

from longtail.report.alternatives import RuleResult
from longtail.report.comparison import Comparison, compare
from longtail.report.evaluation import evaluate
from longtail.report.measure import Measurement
from longtail.report.psp import PSPDiagnostic, psp_diagnostic
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
