"""One-vs-all losses: a sum over labels, each of which depends on its own score only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.losses.binary import BinaryLoss, as_binary
from longtail.losses.observed import LossValue, Observed, check_inputs
from longtail.losses.row_weights import normalized_weights
from longtail.losses.weights import surrogate_weights

__all__ = ["OVA", "OVAN", "Surrogate"]


def _sum_over_labels(
    observed: Observed, base: str | BinaryLoss, positive: np.ndarray, negative: np.ndarray
) -> LossValue:
    """Return ``sum_j a_j l1(s_j) + b_j l0(s_j)``: ``positive`` and ``negative`` hold a and b of the
    observed labels; the others have 0 and 1.
    """
    loss = as_binary(base)
    value, gradient = loss.negative(observed.scores)
    at = (observed.rows, observed.columns)
    value1, slope1 = loss.positive(observed.scores[at])
    value[at] = positive * value1 + negative * value[at]
    gradient[at] = positive * slope1 + negative * gradient[at]
    return LossValue(value.sum(axis=1), gradient)


@dataclass(frozen=True)
class OVA:
    """One-vs-all, corrected to be unbiased: ``sum_j (y_j/p_j) l1(s_j) + (1 - y_j/p_j) l0(s_j)``.

    Linear in y, so its mean over masks is the loss of the complete labels; graded labels included.
    The coefficient of ``l0`` is negative for an observed label that could have been missed: for
    hinges and the logistic loss the sum has no lower bound, and only the logistic loss and the
    squared error stay convex. To measure with; to train, prefer ``Surrogate``.

    Parameters
    ----------
    base : str or BinaryLoss, default="logistic"
        A binary loss by name (``longtail.losses.binary``), or a ``BinaryLoss``.

    >>> OVA("squared_error")([[0.0, 0.0]], [[0]], [0.5, 1.0]).value
    array([2.])

    N. Natarajan et al., "Learning with noisy labels", NeurIPS 2013; Schultheis and Babbar 2021.
    """

    base: str | BinaryLoss = "logistic"

    def __call__(self, scores: Any, Y: Any, propensity: Any = None) -> LossValue:
        observed = check_inputs(scores, Y, propensity)
        part = observed.values * observed.inverse
        return _sum_over_labels(observed, self.base, part, 1.0 - part)


@dataclass(frozen=True)
class Surrogate:
    """``sum_j w_j y_j l1(s_j) + (1 - y_j) l0(s_j)`` with ``w = 2/p - 1`` (PW), convex and bounded.

    Correct the 0-1 loss first, then take a convex loss in place of the indicator: the unbiased 0-1
    loss of an observed label is ``(2/p - 1) 1[s < 0]`` and a constant. Correcting the convex loss
    itself (``OVA``) would leave it neither convex nor bounded. Multiplying everything by
    ``p/(2 - p)`` gives the same problem with negatives weighing less.

    A graded label weighs with its value, and with the rest as a negative.

    Parameters
    ----------
    base : str or BinaryLoss, default="logistic"
        A binary loss, or its name.
    balance : str, default=None
        None, "after" (PW-cb) or "before"; see ``surrogate_weights``.
    counts : array of shape (L,), default=None
        Observed positives of each label in the training data, for ``balance``.
    beta : float, default=0.9
        Of the balance; labels beyond some 1 / (1 - beta) positives weigh alike.
    mean_one : bool, default=False
        Scale the weights to a mean of 1, for deep models.

    >>> Surrogate("hinge")([[0.0, 0.0]], [[0]], [0.5, 0.5]).value
    array([4.])

    Qaraei et al. 2021.
    """

    base: str | BinaryLoss = "logistic"
    balance: str | None = None
    counts: Any = None
    beta: float = 0.9
    mean_one: bool = False

    def __call__(self, scores: Any, Y: Any, propensity: Any = None) -> LossValue:
        observed = check_inputs(scores, Y, propensity)
        weights = surrogate_weights(
            observed.propensity,
            self.counts,
            balance=self.balance,
            beta=self.beta,
            mean_one=self.mean_one,
        )
        positive = weights[observed.columns] * observed.values
        return _sum_over_labels(observed, self.base, positive, 1.0 - observed.values)


@dataclass(frozen=True)
class OVAN:
    """Normalised one-vs-all: ``sum_j T_j l1(s_j) + (1 - T_j) l0(s_j)``, where ``T_j`` is the share
    of label j in its row; its optimum orders labels by their contribution to recall.

    ``estimate`` of ``T_j`` from observed labels: "bound" or "unbiased" (``normalized_weights``).
    The second makes the loss unbiased. With the first it is a heuristic: ``l1 - l0`` changes sign,
    so a T that is too large does not bound the loss from above, as it does in ``PALN``.

    Parameters
    ----------
    base : str or BinaryLoss, default="logistic"
        A binary loss, or its name.
    estimate : {"bound", "unbiased"}, default="bound"
        How ``T_j`` is estimated from observed labels.

    >>> OVAN("hinge")([[0.5, -2.0]], [[0]]).value
    array([0.5])

    Menon et al. 2019; Schultheis and Babbar 2021.
    """

    base: str | BinaryLoss = "logistic"
    estimate: str = "bound"

    def __call__(self, scores: Any, Y: Any, propensity: Any = None) -> LossValue:
        observed = check_inputs(scores, Y, propensity)
        share = normalized_weights(
            observed.labels, observed.propensity, estimate=self.estimate
        ).data
        return _sum_over_labels(observed, self.base, share, 1.0 - share)
