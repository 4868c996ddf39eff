"""Confusion counts and the measures of one label that are made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ConfusionCounts", "ratio"]


def ratio(numerator: Any, denominator: Any) -> np.ndarray:
    """Return the element-wise quotient where 0/0 is 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    above, below = np.broadcast_arrays(
        np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    )
    quotient: np.ndarray = np.divide(above, below, out=np.zeros(above.shape), where=below != 0)
    return quotient


@dataclass(frozen=True)
class ConfusionCounts:
    """What a test set says about each label: the counts t, q and p of the macro-at-k literature.

    All arrays have shape (L,) and dtype float64. With graded truth the counts are sums of truth
    values, that is, expected counts if the values are probabilities.

    ``true_positives``  sum over rows that predict the label of its truth value
    ``predicted``       number of rows that predict it
    ``positives``       sum of its truth values
    ``n_rows``          number of rows

    The measures (``precision()`` and so on) return one value per label, and 0 where they are 0/0.
    ``epsilon`` is added to every denominator, for the convention of evaluators that do so.

    >>> tp, predicted, positives = np.array([1.0, 0.0]), np.array([2.0, 0.0]), np.array([1.0, 1.0])
    >>> counts = ConfusionCounts(tp, predicted, positives, 4.0)
    >>> counts.precision(), counts.recall(), counts.true_negatives
    (array([0.5, 0. ]), array([1., 0.]), array([2., 3.]))
    """

    true_positives: np.ndarray
    predicted: np.ndarray
    positives: np.ndarray
    n_rows: float

    def __getitem__(self, labels: Any) -> ConfusionCounts:
        """Return the counts of some labels (slice, mask or index array)."""
        return ConfusionCounts(
            self.true_positives[labels],
            self.predicted[labels],
            self.positives[labels],
            self.n_rows,
        )

    @property
    def false_positives(self) -> np.ndarray:
        """Predicted but not true."""
        count: np.ndarray = self.predicted - self.true_positives
        return count

    @property
    def false_negatives(self) -> np.ndarray:
        """True but not predicted."""
        count: np.ndarray = self.positives - self.true_positives
        return count

    @property
    def true_negatives(self) -> np.ndarray:
        """Neither true nor predicted."""
        count: np.ndarray = self.n_rows - self.predicted - self.positives + self.true_positives
        return count

    def precision(self, epsilon: float = 0.0) -> np.ndarray:
        """Return tp / (tp + fp); 0 for a label that is never predicted.

        Parameters
        ----------
        epsilon : float, default=0.0
            Added to the denominator.
        """
        return ratio(self.true_positives, self.predicted + epsilon)

    def recall(self, epsilon: float = 0.0) -> np.ndarray:
        """Return tp / (tp + fn), the true positive rate; 0 for a label that no row has.

        Parameters
        ----------
        epsilon : float, default=0.0
            Added to the denominator.
        """
        return ratio(self.true_positives, self.positives + epsilon)

    def specificity(self, epsilon: float = 0.0) -> np.ndarray:
        """Return tn / (tn + fp), the true negative rate.

        Parameters
        ----------
        epsilon : float, default=0.0
            Added to the denominator.
        """
        return ratio(self.true_negatives, self.n_rows - self.positives + epsilon)

    def f1(self, epsilon: float = 0.0) -> np.ndarray:
        """Return 2 tp / (2 tp + fp + fn); 0 for a label that no row has or predicts.

        Parameters
        ----------
        epsilon : float, default=0.0
            Added to the denominator.
        """
        return ratio(2 * self.true_positives, self.predicted + self.positives + epsilon)

    def balanced_accuracy(self, epsilon: float = 0.0) -> np.ndarray:
        """Return (recall + specificity) / 2.

        Recall is tp / (tp + fn), specificity tn / (tn + fp). Close to 1/2 for a label that is never
        predicted, so with many labels the mean moves little.

        Parameters
        ----------
        epsilon : float, default=0.0
            Added to the denominator.
        """
        mean: np.ndarray = (self.recall(epsilon) + self.specificity(epsilon)) / 2
        return mean

    def g_mean(self, epsilon: float = 0.0) -> np.ndarray:
        """Return sqrt(recall * specificity).

        For sqrt(precision * recall), which some papers call G-mean too, see ``fowlkes_mallows``.

        Parameters
        ----------
        epsilon : float, default=0.0
            Added to the denominator.
        """
        mean: np.ndarray = np.sqrt(self.recall(epsilon) * self.specificity(epsilon))
        return mean

    def fowlkes_mallows(self, epsilon: float = 0.0) -> np.ndarray:
        """Return sqrt(precision * recall).

        Some papers call it G-mean; the usual one is ``g_mean``.

        Parameters
        ----------
        epsilon : float, default=0.0
            Added to the denominator.
        """
        mean: np.ndarray = np.sqrt(self.precision(epsilon) * self.recall(epsilon))
        return mean
