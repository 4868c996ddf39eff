"""Propensity models: ``p_j = P(label j is observed | label j is relevant)``, a vector in (0, 1]^L.

Data sets this large are never labelled completely, and rare labels are thought to go missing most
often. A propensity model says how often; propensity-scored metrics and losses divide by it. Every
model here is fitted once and then holds ``propensity_`` and ``inverse_``; metrics and losses accept
any object with ``.inverse_``.

Which one to take, best evidence first:

- ``DirectPropensity``: observed rate over the rate on a subset of pairs queried at random.
- ``RichardsPropensity``: a curve in label frequency through such estimates, to smooth them.
- ``JointPropensity``: learned together with a logistic model, where nothing was queried.
- ``JainPropensity``: a fixed formula in label frequency; to compare with published PSP numbers.
- ``FixedPropensity``: a vector you supply, such as a benchmark's ``inv_prop.txt``.

Schultheis et al. (KDD 2022) found the first best, the middle two next and the formula of Jain et
al. the least successful correction, on data where the truth is known;
``longtail.report.psp_diagnostic`` shows when a model contradicts the data.
"""

from longtail.propensity.base import Propensity, PropensityWarning
from longtail.propensity.direct import DirectPropensity
from longtail.propensity.fixed import FixedPropensity
from longtail.propensity.jain import JainPropensity
from longtail.propensity.joint import JointPropensity
from longtail.propensity.richards import RichardsPropensity

__all__ = [
    "DirectPropensity",
    "FixedPropensity",
    "JainPropensity",
    "JointPropensity",
    "Propensity",
    "PropensityWarning",
    "RichardsPropensity",
]
