"""Objectives: from scores and targets to a loss and its gradient, chunk by chunk of labels.

==================  ====================================================  ========================
objective           loss of a row                                         gradient by z_j
==================  ====================================================  ========================
``Binary``          ``sum_j a_j l1(z_j) + b_j l0(z_j)``                   ``a_j l1' + b_j l0'``
``Softmax``         ``sum_j w_j (log sum_i e^{z_i} - z_j)``               ``|w| softmax(z)_j - w_j``
``SquaredError``    ``1/2 sum_j (z_j - t_j)^2``                           ``z_j - t_j``
``ErrorLength``     ``sqrt(sum_j (z_j - t_j)^2)``                         ``(z_j - t_j) / |z - t|``
``SupCon``          ``sum_p w_p (log sum_l e^{z_l} - z_p)``, over a pool  ``softmax(z)_j - w_j``
``Decoupled``       the same, l over p and the negatives alone            see ``contrastive``
``Triplet``         ``sum_p w_p max(0, margin - z_p + max_n z_n)``        see ``contrastive``
==================  ====================================================  ========================

``l1`` and ``l0`` are the logistic loss, the squared hinge, the hinge or the squared error, of a
positive and of a negative. The weights ``a``, ``b``, ``w`` come from the labels (y and 1 - y for
complete ones; ``y / sum(y)`` for a softmax) and, where labels are missing, from a correction of
``longtail.losses`` (``weighting``). A row without labels teaches a softmax nothing.

Losses of rows are averaged over the batch (``reduction="rows"``), added up ("sum") or averaged over
rows and labels ("mean").
"""

from longtail.deep.objectives.binary import Binary
from longtail.deep.objectives.by_name import named
from longtail.deep.objectives.contrastive import Decoupled, SupCon, Triplet
from longtail.deep.objectives.objective import Bound, Objective
from longtail.deep.objectives.regression import ErrorLength, SquaredError
from longtail.deep.objectives.softmax import Softmax

__all__ = [
    "Binary",
    "Bound",
    "Decoupled",
    "ErrorLength",
    "Objective",
    "Softmax",
    "SquaredError",
    "SupCon",
    "Triplet",
    "named",
]
