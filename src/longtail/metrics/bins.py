"""Head to tail: which labels a score comes from.

Labels are sorted by their training frequency and cut into bins of equal volume, that is, with equal
shares of all training positives: a few frequent labels make up the first bin, most labels the last.
P@k is then the sum of the bins' contributions (Dahiya et al., "SiameseXML", ICML 2021, show their
results like this).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._native import core, csr_args
from longtail._validation import as_k, as_labels
from longtail.metrics.confusion import ratio
from longtail.metrics.matching import matched
from longtail.metrics.propensity_scored import inverse_propensities

__all__ = ["BinContribution", "LabelBins", "contribution_by_bin", "frequency_bins"]


@dataclass(frozen=True)
class LabelBins:
    """Labels grouped by frequency, head first.

    ``bin_of_label`` (L,) int64; per bin, of shape (B,): ``n_labels``, ``volume`` (training
    positives), ``min_count`` and ``max_count`` (the range of label frequencies; 0 for a bin without
    labels).
    """

    bin_of_label: np.ndarray
    n_labels: np.ndarray
    volume: np.ndarray
    min_count: np.ndarray
    max_count: np.ndarray

    def __len__(self) -> int:
        return len(self.n_labels)


@dataclass(frozen=True)
class BinContribution:
    """What each bin adds to a metric.

    ``contribution`` (B,) adds up to P@k, or PSP@k; ``recall`` (B,) is the share of a bin's test
    positives that were found.
    """

    contribution: np.ndarray
    recall: np.ndarray
    bins: LabelBins


def frequency_bins(train_Y: Any, n_bins: int = 5) -> LabelBins:
    """Cut labels into bins of equal training volume, from the most to the least frequent.

    ``train_Y`` holds training labels (n, L), or is the array of label frequencies (L,). Labels are
    taken by decreasing frequency, ties by smaller id; a label belongs to the bin in which its share
    of the volume begins. A label larger than a bin leaves the following bins empty; labels never
    seen in training are in the last bin.

    Parameters
    ----------
    train_Y : matrix of shape (n, L), or array of shape (L,)
        Training labels, or their counts.
    n_bins : int, default=5
        Number of bins.

    >>> bins = frequency_bins(np.array([4, 2, 1, 1, 0]), n_bins=2)
    >>> bins.bin_of_label, bins.volume
    (array([0, 1, 1, 1, 1]), array([4., 4.]))
    """
    n_bins = as_k(n_bins, "n_bins")
    counts = _label_frequencies(train_Y)
    order = np.argsort(-counts, kind="stable")
    ordered = counts[order]
    ends = np.cumsum(ordered)
    total = ends[-1] if len(ends) else 0.0
    bins = np.minimum(np.floor(ratio((ends - ordered) * n_bins, total)), n_bins - 1)
    bins[ordered == 0] = n_bins - 1
    bin_of_label = np.empty(len(counts), dtype=np.int64)
    bin_of_label[order] = bins
    # Bins are runs of the ordered labels: edges[b] .. edges[b + 1], descending in frequency.
    edges = np.searchsorted(bins, np.arange(n_bins + 1))
    first, last = edges[:-1], edges[1:] - 1
    filled = first <= last
    volume, largest, smallest = np.zeros((3, n_bins))
    volume[filled] = ends[last[filled]] - ends[first[filled]] + ordered[first[filled]]
    largest[filled], smallest[filled] = ordered[first[filled]], ordered[last[filled]]
    return LabelBins(bin_of_label, np.diff(edges), volume, smallest, largest)


def _label_frequencies(train_Y: Any) -> np.ndarray:
    counts: np.ndarray
    if isinstance(train_Y, np.ndarray) and train_Y.ndim == 1 and train_Y.dtype.kind in "iuf":
        counts = train_Y.astype(np.float64)
        if not np.isfinite(counts).all() or (counts < 0).any():
            raise ValueError("label frequencies must be finite and not negative")
        return counts
    truth = as_labels(train_Y, name="train_Y")
    counts = core.add_by_label_csr(csr_args(truth), None)
    return counts


def contribution_by_bin(
    Y_true: Any,
    top: Any,
    bins: LabelBins,
    k: int = 5,
    *,
    p: Any = None,
    normalize: bool = True,
    compat: str | None = None,
) -> BinContribution:
    """Return how much the labels of each bin contribute to P@k, or to PSP@k if propensities are
    given.

    contribution_b = (1 / (n k)) sum of the gains of predicted labels in bin b (times 1/p; divided
    by the PSP@k of the best rankings if ``normalize``). The contributions add up to
    ``precision_at_k`` or ``ps_precision_at_k``.

    Parameters
    ----------
    Y_true : matrix of shape (n, L), or list of lists of int
        True labels of the rows.
    top : TopK, matrix of scores, or lists of ids
        The answers, best first.
    bins : LabelBins
        Groups of labels by frequency.
    k : int, default=5
        Answers per row that count.
    p : array of shape (L,), or a propensity model, default=None
        Propensities of labels.
    normalize : bool, default=True
        Divide by the largest value that any answers could have.
    compat : str, default=None
        Conventions of another evaluator (``longtail.metrics.conventions``).

    >>> bins = frequency_bins(np.array([4, 2, 1, 1]), n_bins=2)
    >>> top = np.array([[0.9, 0.8, 0.1, 0.0], [0.9, 0.1, 0.2, 0.0]])
    >>> contribution_by_bin([[0, 2], [0]], top, bins, k=1).contribution
    array([1., 0.])
    """
    m, k, _ = matched(Y_true, top, k, compat)
    if len(bins.bin_of_label) != m.n_labels:
        raise ValueError(
            f"the bins were made for {len(bins.bin_of_label)} labels, but Y_true has {m.n_labels}"
        )
    counts = m.label_counts(k)
    gains, best = counts.true_positives, counts.n_rows * k
    if p is not None:
        inverse = inverse_propensities(p, m.n_labels)
        gains = gains * inverse
        if normalize:
            ideal = m.under(inverse).ideal_hits(k)
            best = float(ideal.sum() if m.weights is None else ideal @ m.weights)

    def by_bin(per_label: np.ndarray) -> np.ndarray:
        return np.bincount(bins.bin_of_label, weights=per_label, minlength=len(bins))

    return BinContribution(
        ratio(by_bin(gains), best),
        ratio(by_bin(counts.true_positives), by_bin(counts.positives)),
        bins,
    )
