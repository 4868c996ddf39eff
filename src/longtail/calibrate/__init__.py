"""From scores to probabilities.

::

    model, rows ──► out_of_fold ──► pairs (score, hit) ──► choice ──► a curve: Platt, Beta, Isotonic
                    answers of copies                      least held-out log-loss
                    that have not seen the rows

A ranker's score orders labels; how often a label with that score is right, only held-out rows can
tell. A calibrator is a rising function from scores to probabilities fitted on them: ``Platt``,
``Beta`` or ``Isotonic``, chosen by held-out log-loss (``choose``). Being rising, it changes no
ranking. ``ProbabilityRanker`` is what rankers inherit: ``calibrate`` and ``predict_proba_topk``.
"""

from longtail.calibrate.beta import Beta
from longtail.calibrate.calibrator import Calibrator, log_loss
from longtail.calibrate.choice import Choice, choose
from longtail.calibrate.isotonic import Isotonic
from longtail.calibrate.out_of_fold import cross_fit
from longtail.calibrate.platt import Platt
from longtail.calibrate.ranker import ProbabilityRanker

__all__ = [
    "Beta",
    "Calibrator",
    "Choice",
    "Isotonic",
    "Platt",
    "ProbabilityRanker",
    "choose",
    "cross_fit",
    "log_loss",
]
