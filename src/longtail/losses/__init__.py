"""Losses for observed labels: estimates, bounds and surrogates of the loss on the complete ones.

Labels go missing one-sidedly: a relevant label j is observed with probability ``p_j``, its
propensity, an irrelevant one never. A loss here takes what was observed and the propensities, and
stands for the loss of the complete labels, which nobody saw:

===============  ==========================================================  =====================
loss             of a row with scores s and observed labels y                on average over masks
===============  ==========================================================  =====================
``OVA``          ``sum_j (y_j/p_j) l1(s_j) + (1 - y_j/p_j) l0(s_j)``         the clean loss
``Surrogate``    ``sum_j w_j y_j l1(s_j) + (1 - y_j) l0(s_j)``               convex, w = 2/p - 1
``PAL``          ``sum_j (y_j/p_j) l_j(s)``                                  the clean loss
``PALN``         ``sum_j T_j l_j(s)``                                        a bound from above
``POL``          ``|T| l_j(s)``, one label j drawn with chance ``T_j/|T|``   as ``PALN``
``OVAN``         ``sum_j T_j l1(s_j) + (1 - T_j) l0(s_j)``                   neither: a heuristic
``Unbiased``     any loss, over all sub-sets of the observed labels          the clean loss
===============  ==========================================================  =====================

``l1``, ``l0`` are a binary loss (``binary.py``), ``l_j`` a loss over all scores
(``pick_labels.py``) and ``T_j`` the weight of a label in its row (``row_weights.py``).

To train, take what is bounded below: ``Surrogate``, ``PAL``, ``PALN``, ``POL``. ``OVA`` falls
without bound as scores grow, unless a regulariser holds it; it and ``Unbiased`` are for measuring.

Every loss is called as ``loss(scores, Y, propensity)`` and returns ``LossValue(value, gradient)``:
one number per row, and its derivative by every score. Means and sums are left to the caller. With
propensities of 1, or None, each is the plain loss, bit for bit. ``longtail.deep.objectives`` has
those that networks train with, chunk by chunk of labels.
"""

from longtail.losses.binary import BINARY_LOSSES, BinaryLoss
from longtail.losses.general import Unbiased
from longtail.losses.observed import LossValue
from longtail.losses.one_vs_all import OVA, OVAN, Surrogate
from longtail.losses.pick_labels import PAL, PALN, POL
from longtail.losses.row_weights import normalized_weights
from longtail.losses.weights import as_propensity, class_balance, surrogate_weights

__all__ = [
    "BINARY_LOSSES",
    "OVA",
    "OVAN",
    "PAL",
    "PALN",
    "POL",
    "BinaryLoss",
    "LossValue",
    "Surrogate",
    "Unbiased",
    "as_propensity",
    "class_balance",
    "normalized_weights",
    "surrogate_weights",
]
