"""``JainPropensity``: the formula behind every published PSP number."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np

from longtail.propensity.base import Propensity, PropensityWarning, label_counts

__all__ = ["JainPropensity"]


class JainPropensity(Propensity):
    """Propensity as a function of label frequency, after Jain, Prabhu and Varma ("JPV").

    ::

        p_j = 1 / (1 + (log n - 1) (b + 1)^a (n_j + b)^-a)

    with n training rows, n_j training positives of label j and the natural logarithm. It grows with
    n_j, and p_j = 1 / log n at n_j = 1 for every a and b. Use n and n_j of the *training* split,
    also to evaluate a test set.

    Parameters: ``a``, ``b`` are (0.5, 0.4) for Wikipedia data sets, (0.6, 2.6) for Amazon's, and
    their mean, the default (0.55, 1.5), by convention everywhere else (``for_dataset`` looks them
    up). No choice was ever estimated for any other data set: see ``longtail.report.psp_diagnostic``
    before reading PSP as more than a tail-weighted score.

    For n = 1 and n = 2, ``log n - 1`` is negative and the formula leaves (0, 1]; the factor is then
    taken as 0, all propensities are 1, and a ``PropensityWarning`` says so. Labels without a
    training point get a finite value.

    Refuses b <= 0 (an unseen label would have propensity 0) and negative a.

    Parameters
    ----------
    a : float, default=0.55
        Constant of the formula, not negative.
    b : float, default=1.5
        Constant of the formula, above 0.

    >>> import numpy as np
    >>> Y = np.zeros((50, 2)); Y[0, 0] = 1; Y[:25, 1] = 1
    >>> JainPropensity(a=0.55, b=1.5).fit(Y).propensity_.round(7)
    array([0.2556222, 0.5571545])

    Jain, Prabhu, Varma: Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking and
    Other Missing Label Applications, KDD 2016. ``DirectPropensity`` is to be preferred
    where some pairs were queried at random.
    """

    type_tag = "jain-propensity"

    def __init__(self, *, a: float = 0.55, b: float = 1.5) -> None:
        self.a = a
        self.b = b

    @classmethod
    def for_dataset(cls, name: str) -> JainPropensity:
        """Return the model, not yet fitted, with the constants that the field uses for a public
        benchmark.

        Names as in ``longtail.data.registry``; an unknown one is a ``KeyError``, since a misspelt
        name must not silently get the default constants.

        Parameters
        ----------
        name : str
            A benchmark, such as "Eurlex-4K".

        >>> JainPropensity.for_dataset("Amazon-670K")
        JainPropensity(a=0.6, b=2.6)
        """
        from longtail.data.registry import benchmark

        entry = benchmark(name)
        return cls(a=entry.a, b=entry.b)

    def fit(self, Y: Any) -> JainPropensity:
        """Count the labels of the training matrix ``Y`` (n, L) and apply the formula.

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        """
        n_rows, counts = label_counts(Y)
        return self.fit_counts(counts, n_rows)

    def fit_counts(self, counts: Any, n_rows: int) -> JainPropensity:
        """Return the same from ``counts`` n_j (L,) and the number ``n_rows`` of training rows.

        Parameters
        ----------
        counts : array of shape (L,)
            Positives of each label.
        n_rows : int
            Number of rows, n.
        """
        _check_constant("a", self.a, minimum=0.0, open_end=False)
        _check_constant("b", self.b, minimum=0.0, open_end=True)
        if n_rows < 1:
            raise ValueError(f"n_rows must be at least 1, got {n_rows}")
        counts = np.asarray(counts, dtype=np.float64)
        if not np.isfinite(counts).all() or (counts < 0).any():
            raise ValueError("counts must be finite and not negative")
        if (counts > n_rows).any():
            raise ValueError(
                f"a label has {counts.max():g} positives in {n_rows} rows: "
                "pass the training matrix, or its own number of rows"
            )
        growth = math.log(n_rows) - 1.0
        if growth < 0.0:
            warnings.warn(
                f"the propensity formula is not defined for {n_rows} row(s): "
                "its factor log n - 1 is negative. All propensities are set to 1, "
                "which turns PSP into plain precision.",
                PropensityWarning,
                stacklevel=3,
            )
            growth = 0.0
        self._store(1.0 / (1.0 + growth * ((counts + self.b) / (self.b + 1.0)) ** -self.a))
        self.n_rows_ = int(n_rows)
        return self

    def _facts(self) -> dict[str, Any]:
        return {"n_rows": self.n_rows_}


def _check_constant(name: str, value: Any, *, minimum: float, open_end: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    value = float(value)
    inside = value > minimum if open_end else value >= minimum
    if not (inside and math.isfinite(value)):
        raise ValueError(f"{name} must be {'>' if open_end else '>='} {minimum:g}, got {value!r}")
