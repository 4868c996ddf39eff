"""Decision rules: from probabilities to the labels that are best for the metric you care about.

The k most probable labels maximise precision at k. They do not maximise macro-F1, coverage or
propensity-scored precision, where a rare label may be worth naming at a lower probability. A rule
takes probabilities of any model (dense, sparse, or a ``TopK`` with probabilities) and answers with
a ``TopK``::

    probabilities ──► candidates ──► a rule ◄── utilities: a metric, and its slopes
                      the door       │          objective: what is maximised over all rows
                                     ▼
                                     TopK of the chosen labels

    chosen = BlockCoordinateAscent("macro_f1", k=5).select(model.predict_proba_topk(X, k=100))

Which one to take:

- ``TopKRule``: the k most probable; maximises precision.
- ``WeightedTopK``: closed forms (propensity-scored precision, macro-recall, balanced accuracy) and
  the usual heuristics (power law, logarithm of the label frequency).
- ``BlockCoordinateAscent``: any label-wise metric, for a batch of rows that is decided together.
- ``FrankWolfe``: learns from validation data a randomised rule for rows that come later.
- ``Threshold``: how many labels, and whether to answer at all.
- ``OnlineRule``: row by row, with running confusion counts, as a server needs it.

Gains that are equal go to the more probable label, then to the smaller id. Where the files are:
``candidates`` (the door), ``utilities`` (metrics and their slopes), one file per rule, ``bound``
(what no rule can exceed), ``sampling`` (Madow's systematic sampling).
"""

from longtail.decide.ascent import BlockCoordinateAscent
from longtail.decide.frank_wolfe import FrankWolfe
from longtail.decide.online import OnlineRule
from longtail.decide.rule import DecisionRule
from longtail.decide.sampling import madow_sample
from longtail.decide.threshold import Threshold
from longtail.decide.top_k import TopKRule, WeightedTopK

__all__ = [
    "BlockCoordinateAscent",
    "DecisionRule",
    "FrankWolfe",
    "OnlineRule",
    "Threshold",
    "TopKRule",
    "WeightedTopK",
    "madow_sample",
]
