"""The propensity-weighted convex surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longtail.losses.binary import BinaryLoss
from longtail.losses.observed import LossValue, check_inputs
from longtail.losses.one_vs_all import sum_over_labels
from longtail.losses.weights import surrogate_weights

__all__ = ["Surrogate"]


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
        return sum_over_labels(observed, self.base, positive, 1.0 - observed.values)
