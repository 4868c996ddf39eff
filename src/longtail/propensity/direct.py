"""``DirectPropensity``: how often a label is observed against how often it is true."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from longtail._renamed import keyword_only
from longtail._validation import as_labels
from longtail.propensity.base import Propensity, PropensityWarning, label_counts

__all__ = ["DirectPropensity"]


class DirectPropensity(Propensity):
    """Ratio of two positive rates, label by label.

    ::

        p_j = (share of rows with label j observed) / (share of queried rows with label j true)

    The first share comes from ordinary data, in which relevant labels are missing; the second from
    a smaller set of (row, label) pairs that were drawn uniformly and asked about explicitly. No
    model of the missingness is assumed beyond that both sets come from the same distribution of
    rows. This is the best of the models here, where such data exists.

    After ``fit``: ``propensity_`` (L,); ``ratio_`` (L,) the raw ratio, NaN where it is undefined. A
    propensity must lie in (0, 1] although a ratio of two samples need not, so three rules apply,
    and a ``PropensityWarning`` counts each:

    - a ratio above 1 becomes 1;
    - a label true in the queried set but never observed counts as observed half a time;
    - a label without a queried positive has no estimate and takes the ratio of the pooled rates of
      all labels.

    >>> import numpy as np
    >>> observed = np.zeros((100, 1)); observed[:10] = 1
    >>> queried = np.zeros((20, 1)); queried[:5] = 1
    >>> DirectPropensity().fit(observed, Y_queried=queried).propensity_  # 10 % observed, 25 % true
    array([0.4])

    Schultheis et al.: On Missing Labels, Long-tails and Propensities in Extreme Multi-label
    Classification, KDD 2022 (on the Yahoo R3 data). ``RichardsPropensity`` smooths these estimates
    where a label has few queried positives.
    """

    type_tag = "direct-propensity"

    ratio_: np.ndarray

    @keyword_only("Y", "Y_queried", "queried")
    def fit(self, Y: Any, *, Y_queried: Any, queried: Any = None) -> DirectPropensity:
        """Learn from observed labels and from pairs of rows and labels that were asked about.

        Parameters
        ----------
        Y : matrix of shape (n, L), or list of lists of int
            The observed labels.
        Y_queried : matrix of shape (q, L)
            Truth of the queried pairs, else 0.
        queried : matrix of shape (q, L), default=None
            Indicator of the pairs that were asked about; None means every pair of those rows.
        """
        n_rows, observed = label_counts(Y)
        n_labels = len(observed)
        asked_rows, true = label_counts(as_labels(Y_queried, n_labels=n_labels, name="Y_queried"))
        if queried is None:
            asked = np.full(n_labels, float(asked_rows))
        else:
            mask = as_labels(queried, n_labels=n_labels, name="queried")
            _check_inside(as_labels(Y_queried, name="Y_queried"), mask)
            asked = np.bincount(mask.indices, minlength=n_labels).astype(np.float64)
        true_rate = np.divide(true, asked, out=np.zeros(n_labels), where=asked > 0)
        if not true_rate.any():
            raise ValueError(
                "Y_queried has no positive: the true rates cannot be estimated from it"
            )
        known = true_rate > 0
        self.ratio_ = np.full(n_labels, np.nan)
        self.ratio_[known] = observed[known] / n_rows / true_rate[known]

        pooled = observed[asked > 0].sum() / n_rows / true_rate.sum()
        p = np.where(known, self.ratio_, pooled if pooled > 0 else 0.5 / n_rows)
        unseen = known & (observed == 0)
        p[unseen] = 0.5 / n_rows / true_rate[unseen]
        above = p > 1
        self._store(np.minimum(p, 1.0))
        _tell(above=int(above.sum()), unseen=int(unseen.sum()), unknown=int((~known).sum()))
        return self

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"ratio_": self.ratio_}

    def _facts(self) -> dict[str, Any]:
        return {"n_estimated": int(np.isfinite(self.ratio_).sum())}


def _check_inside(truth: Any, mask: Any) -> None:
    if truth.shape != mask.shape:
        raise ValueError(f"Y_queried has the shape {truth.shape}, queried {mask.shape}")
    outside = truth.nnz - truth.multiply(mask > 0).count_nonzero()
    if outside:
        raise ValueError(
            f"{outside} positives of Y_queried are not among the queried pairs: "
            "a pair must be asked about to be known"
        )


def _tell(*, above: int, unseen: int, unknown: int) -> None:
    parts = [
        f"{above} ratio(s) above 1 were set to 1" if above else "",
        f"{unseen} label(s) were never observed and count as observed half a time"
        if unseen
        else "",
        f"{unknown} label(s) have no queried positive and take the pooled ratio" if unknown else "",
    ]
    if any(parts):
        message = "; ".join(part for part in parts if part)
        warnings.warn(f"direct propensities: {message}", PropensityWarning, stacklevel=3)
